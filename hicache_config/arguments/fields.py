"""The types that argument fields are made of: strict numbers, switches and choices, with unit, scope and flag.

Choices are those of the release in the validation context (`context={"release": "0.5.20"}`), the newest known one
without a context. Must not import anything above this floor.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationInfo
from pydantic_core import PydanticCustomError

from ..core.releases import NEWEST
from .releases import table


class ArgumentBlock(BaseModel):
    """Arguments that belong together. Only `ServerArgs`, which has all blocks, is ever validated."""

    # A block's own validator would be built for nothing; it is a good part of the start-up.
    model_config = ConfigDict(defer_build=True)


def argument(
    default: Any, description: str, *, unit: str | None = None, scope: str | None = None, **limits: Any
) -> Any:
    """A field of the server arguments: our own description, the unit of its number and what it counts for.

    `scope` is one of "per rank", "per host", "per engine", "per model". `limits` are pydantic's (ge, gt, le, examples).
    """
    extra: dict[str, Any] = {name: value for name, value in (("unit", unit), ("scope", scope)) if value is not None}
    return Field(default=default, description=description, json_schema_extra=extra or None, **limits)


def _check_choice(value: str, info: ValidationInfo) -> str:
    release = (info.context or {}).get("release", NEWEST)
    known = table(release).get(info.field_name or "")
    if known is not None and known.choices and value not in known.choices:
        raise PydanticCustomError(
            "choice", "not one of the choices", {"choices": list(known.choices), "release": release}
        )
    return value


def _whole(value: Any) -> Any:
    """A float without a fraction counts as the integer: `/server_info` prints `100.0` for a size given as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fits_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise PydanticCustomError("too_large", "does not fit into 64 bits")
    return value


Integer = Annotated[int, Strict(), AfterValidator(_fits_64_bits)]
WholeNumber = Annotated[int, Strict(), AfterValidator(_fits_64_bits), BeforeValidator(_whole)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Text = Annotated[str, Strict()]
Choice = Annotated[str, Strict(), AfterValidator(_check_choice)]
