"""Scalars in Kubernetes' dialect of YAML (spec 10 §4.3).

The dialect has booleans and octals of YAML 1.1 and `0o17` of YAML 1.2, but no dates, no base-60
numbers and no floats without a fraction. Only this module defines it.
"""

import base64
import binascii
import re
from math import isinf
from typing import Final, TypeAlias

from pergola.kube.errors import KubeError

Scalar: TypeAlias = str | int | float | bool | None

_TAGS: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
_FALSE: Final = ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
_NULL: Final = ("", "~", "null", "Null", "NULL")
_WORDS: Final[dict[str, bool | None]] = (
    dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False) | dict.fromkeys(_NULL)
)
_INF: Final = (".inf", ".Inf", ".INF")
_NOT_FINITE: Final = frozenset(
    [sign + word for sign in ("", "+", "-") for word in _INF] + [".nan", ".NaN", ".NAN"]
)
_FIRST_OF_NUMBERS: Final = frozenset("+-.0123456789")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_PREFIXED: Final = re.compile(r"0(?:[xX]([0-9a-fA-F]+)|[oO]([0-7]+)|[bB]([01]+))")
_BASES: Final = (0, 16, 8, 2)  # of the groups of _PREFIXED
# the combined range of Go's int64 and uint64; the upper end is exclusive
_LEAST, _MOST = -(2**63), 2**64


class YamlError(KubeError):
    """A text that is not valid YAML, or a value that YAML cannot represent.

    Neither the message nor the attributes contain any of the text, which may be secret.

    Attributes:
        problem: what is wrong, without the place.
        line: counted from 1; 0 if unknown.
        column: counted from 1; 0 if unknown.
    """

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        self.problem, self.line, self.column = problem, line, column
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)


def plain(text: str) -> Scalar:
    """Return the value of a scalar that is neither quoted nor tagged.

    Raises:
        YamlError: the value is infinite or NaN, which JSON cannot represent.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBERS:
        return text
    if text in _NOT_FINITE:
        raise YamlError("infinity and not-a-number cannot be represented in JSON; quote them")
    return _number(text)


def tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with a tag; unknown tags make strings.

    Raises:
        YamlError: the text does not fit the tag.
    """
    name = tag.removeprefix(_TAGS)
    if name == "binary":
        return _decoded(text)
    kinds = _KINDS.get(name) if name != tag else None
    if kinds is None:
        return text
    value = plain(text)
    if type(value) not in kinds:
        raise YamlError(f"the value does not match its tag !!{name}")
    return float_to_number(value) if isinstance(value, float) else value


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


def key(value: object) -> str:
    """Return a map key as the string that JSON needs: `true`, `511`, `1.5`.

    Raises:
        YamlError: the key is null, a map or a list.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise YamlError("a map key is null; quote it" if value is None else "a map key is not a scalar")


def float_to_number(value: float) -> int | float:
    """Return floats without a fraction as integers, as far as 64 bits can hold them."""
    return int(value) if value.is_integer() and _LEAST <= value < _MOST else value


def _number(text: str) -> int | float | str:
    digits = text if text[0] == "." else text.replace("_", "")
    negative = digits[0] == "-"
    value = _unsigned_integer(digits[1:] if digits[0] in "+-" else digits)
    if value is not None and _LEAST <= (signed := -value if negative else value) < _MOST:
        return signed
    if not _FLOAT.fullmatch(digits):
        return text
    number = float(digits)
    # Out of range for a float: Go treats it as a string.
    return text if isinf(number) else float_to_number(number)


def _unsigned_integer(digits: str) -> int | None:
    if digits.isdecimal() and digits.isascii():
        if digits[0] == "0" and "8" not in digits and "9" not in digits:
            return int(digits, 8)
        # Longer ones exceed 64 bits, and Python refuses to convert very long ones.
        return int(digits) if len(digits) <= 20 else None
    match = _PREFIXED.fullmatch(digits)
    if match is None or match.lastindex is None:
        return None
    return int(match[match.lastindex], _BASES[match.lastindex])


def _decoded(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise YamlError("!!binary is not valid base64") from None
