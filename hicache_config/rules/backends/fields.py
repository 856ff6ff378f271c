"""The types that backend settings are made of, and what all backends share.

Sizes carry their unit and what they count for in the field's schema. Source: SGLang 0.5.23, mem_cache/storage/ and
mem_cache/hybrid_cache/hybrid_cache_controller.py. Must not import anything above this floor.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic_core import PydanticCustomError

from ...core.units import GIB

_WHOLE = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*", re.ASCII)
_FILE_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>Ki|Mi|Gi|Ti|k|M|G|T)?", re.ASCII)
_FILE_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip


def setting(default: Any, description: str, *, unit: str | None = None, scope: str | None = None, **limits: Any) -> Any:
    """A field: our own description, the unit of its number and what it counts for ("per rank", "per engine", …)."""
    extra: dict[str, Any] = {name: value for name, value in (("unit", unit), ("scope", scope)) if value is not None}
    return Field(default=default, description=description, json_schema_extra=extra or None, **limits)


def mooncake_bytes(value: Any) -> Any:
    """Bytes of a Mooncake segment: a whole number of bytes, or text such as `4gb`, where gb means GiB (2**30).

    Source: SGLang 0.5.23, mem_cache/storage/mooncake_store/mooncake_store.py:_parse_global_segment_size.
    """
    if isinstance(value, bool):
        raise PydanticCustomError("amount", "true and false are no sizes")
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not value.is_integer():
            raise PydanticCustomError("amount", "bytes are whole")
        return int(value)
    text = str(value).strip().lower()
    number, factor = (text[:-2].strip(), GIB) if text.endswith("gb") else (text, 1)
    if not _WHOLE.fullmatch(number):
        raise PydanticCustomError("amount", "neither whole bytes nor a whole number of gb, such as 4gb (4 GiB)")
    return int(number) * factor


def whole(value: Any) -> Any:
    """What Python's int() makes of a number or its text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return value


def number(value: Any) -> Any:
    """What Python's float() makes of a number or its text."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def loose_bool(value: Any) -> Any:
    """true/false, 1/0, yes/no, on/off (0.5.23, mem_cache/storage/umbp/umbp_store.py:_strict_bool)."""
    if isinstance(value, str):
        return {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }.get(value.strip().lower(), value)
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def file_bytes(value: Any) -> Any:
    """Bytes of a cap of the file backend: a number or text with k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti.

    Anything else (`200GB`, `4gb`) switches the cap off with a log line. Source: SGLang 0.5.23,
    mem_cache/storage/file/lru_file_evictor.py:_parse_size_to_bytes and utils/common.py:human_readable_int.
    """
    if isinstance(value, int | float):
        return max(0, int(value))
    text = str(value).strip()
    match = _FILE_SIZE.fullmatch(text)
    if match is None or ((match["unit"] or "").endswith("i") and "." in match["number"]):
        raise PydanticCustomError(
            "amount", "no size here: write bytes, or a number with G (10**9) or Gi (2**30) and no B"
        )
    return int(Decimal(match["number"]) * _FILE_UNITS[match["unit"] or ""])


Text = Annotated[str, Strict()]
Switch = Annotated[bool, Strict()]
LooseSwitch = Annotated[bool, Strict(), BeforeValidator(loose_bool)]
Whole = Annotated[int, Strict()]
LooseWhole = Annotated[int, Strict(), BeforeValidator(whole)]
Number = Annotated[float, Field(allow_inf_nan=False)]
LooseNumber = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(number)]
SegmentBytes = Annotated[int, Strict(), Field(ge=0), BeforeValidator(mooncake_bytes)]
FileBytes = Annotated[int, Strict(), Field(ge=0), BeforeValidator(file_bytes)]


class BackendSettings(BaseModel):
    """Keys that SGLang takes out before a backend sees its settings; every backend has them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    #: The name of the backend.
    backend: ClassVar[str] = ""
    #: Whether a key that the backend does not know is refused by it; else it is passed by.
    refuses_unknown: ClassVar[bool] = False
    #: Whether the backend hands every key on to a library of its own, so that any key may be right.
    open_ended: ClassVar[bool] = False

    prefetch_threshold: Whole = setting(
        256, "Shortest missing prefix that is fetched from storage; at least a page in effect.", unit="tokens", ge=0
    )
    prefetch_timeout_base: Number = setting(1, "Fixed part of the prefetch timeout.", unit="seconds", ge=0)
    prefetch_timeout_per_ki_token: Number = setting(
        0.25, "Part of the prefetch timeout for each 1,024 tokens.", unit="seconds per 1,024 tokens", ge=0
    )
    hicache_storage_pass_prefix_keys: Switch = setting(False, "Hand the keys of the prefix to the backend as well.")
    tp_lcm_size: Whole | None = setting(
        None,
        "Least common multiple of the tensor-parallel sizes of the engines that share pages; heads are split by it "
        "with "
        "layout page_head.",
        unit="ranks",
        ge=1,
    )
