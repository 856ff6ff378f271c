"""What a command line's text becomes: SGLang's argparse converters, repeated exactly.

Source: SGLang 0.5.23, arg_groups/arg_utils.py and utils/common.py:human_readable_int. Must not import anything above
this floor.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from .releases import Argument

_HUMAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<suffix>Ki|Mi|Gi|Ti|k|M|G|T)")
_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
#: A number of more digits is beyond 64 bits and is refused before it is converted.
_LONGEST_NUMBER = 400


class TextError(ValueError):
    """The text does not convert; the message says what the argument takes."""


def convert(argument: Argument, value: Any) -> Any:
    """The typed value of what a command line, or a file in flag spelling, carries for an argument.

    A text is converted, a list word by word, an empty text or true sets a switch; numbers of a file are taken as they
    are. Raises TextError.
    """
    if argument.kind == "flag":
        return _switch(value)
    if isinstance(value, list):
        return [_word(argument, item) for item in value]
    converted = _word(argument, value)
    return [converted] if argument.nargs in ("+", "*") and not isinstance(converted, list) else converted


def _switch(value: Any) -> bool:
    if value is None or value == "" or value is True:
        return True
    if value is False:
        return False
    raise TextError("a switch takes no value: write the flag alone, or leave it out")


def _word(argument: Argument, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if argument.kind == "int":
        return _integer(value, human=argument.converter == "human_readable_int")
    if argument.kind == "float":
        return _number(value)
    if argument.kind == "json":
        try:
            return json.loads(value)
        except ValueError as error:
            raise TextError(f"JSON text is expected ({error})") from None
    return value


def _integer(text: str, *, human: bool) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise TextError("a whole number is expected")
    match = _HUMAN.fullmatch(text.strip()) if human else None
    if match:
        number, suffix = match["number"], match["suffix"]
        if suffix in _SI:
            return int(Decimal(number) * _SI[suffix])
        if "." in number:
            raise TextError(f"no decimals before {suffix}: write a whole number of {suffix}")
        return int(number) * _IEC[suffix]
    try:
        return int(text)
    except ValueError:
        kinds = "a whole number, such as 1000000, 1M or 1Mi" if human else "a whole number"
        raise TextError(f"{kinds} is expected") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TextError("a number is expected") from None
