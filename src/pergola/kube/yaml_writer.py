"""YAML for people, from JSON values: block style, sorted keys, the same bytes for the same value.

Readers disagree on what is a number, a date or a boolean. A string stays unquoted only if readers
of every version treat it as a string.
"""

import re
from collections.abc import Callable
from math import isfinite
from typing import Final

import orjson

from pergola.api.objects import JsonValue
from pergola.kube.yaml_nodes import DEEPEST, TOO_DEEP
from pergola.kube.yaml_scalars import YamlError, float_to_number

_STEP: Final = "  "
_LONGEST_KEY: Final = 1000  # libyaml looks for the colon of a key within 1024 characters
# Begins with a letter, and contains no `: `, no ` #` and no trailing blank.
_PLAIN: Final = re.compile(
    r"[A-Za-z_/][\w./@%+=,;()&*!?<>$\[\]{}\\^~`|\"'-]*"
    r"(?:[ :][\w./@%+=,;()&*!?<>$\[\]{}\\^~`|\"'-]+)*",
    re.ASCII,
)
_WORDS: Final = frozenset(
    {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan", "infinity"}
)
# Line breaks of YAML 1.1 and characters that libyaml rejects; JSON escapes control characters.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NOT_LITERAL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def dump(value: JsonValue) -> str:
    """Return one document, with a line break at its end; `parse` returns the same value.

    Raises:
        YamlError: a float that is not finite, a lone surrogate, or more than 200 levels.
    """
    lines: list[str] = []
    _Writer(lines.append).write(value, "", 0)
    return "".join(lines)


class _Writer:
    """A writer that appends pieces of text; every value ends its line."""

    def __init__(self, append: Callable[[str], None]) -> None:
        self._append = append

    def write(self, value: JsonValue, indent: str, depth: int, first: str = "") -> None:
        """Append a value after `first`, the indentation still to be written."""
        if depth > DEEPEST:
            raise YamlError(TOO_DEEP)
        if isinstance(value, dict) and value:
            self._mapping(value, indent, depth, first)
        elif isinstance(value, list) and value:
            self._sequence(value, indent, depth, first)
        else:
            self._append(f"{first}{_flat(value)}\n")

    def _mapping(self, items: dict[str, JsonValue], indent: str, depth: int, first: str) -> None:
        for name in sorted(items):
            self._append(first + _key(name, indent))
            first = indent
            self._below(items[name], indent, depth)

    def _below(self, value: JsonValue, indent: str, depth: int) -> None:
        """Append the value of a key; lists have no extra indentation."""
        if isinstance(value, dict) and value:
            self._append("\n")
            self.write(value, indent + _STEP, depth + 1, indent + _STEP)
        elif isinstance(value, list) and value:
            self._append("\n")
            self.write(value, indent, depth + 1, indent)
        else:
            self._leaf(value, indent)

    def _sequence(self, items: list[JsonValue], indent: str, depth: int, first: str) -> None:
        for item in items:
            self._append(f"{first}-")
            first = indent
            if isinstance(item, dict | list) and item:
                self.write(item, indent + _STEP, depth + 1, " ")
            else:
                self._leaf(item, indent)

    def _leaf(self, value: JsonValue, indent: str) -> None:
        if isinstance(value, str) and "\n" in value and _fits_literal(value):
            self._append(_literal(value, indent + _STEP))
        else:
            self._append(f" {_flat(value)}\n")


def _key(name: str, indent: str) -> str:
    text = _string(name)
    return f"{text}:" if len(text) <= _LONGEST_KEY else f"? {text}\n{indent}:"


def _flat(value: JsonValue) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, int):
        return str(value)
    return "null" if value is None else "{}" if isinstance(value, dict) else "[]"


def _string(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    try:
        quoted = orjson.dumps(text).decode()
    except orjson.JSONEncodeError:
        raise YamlError("a string contains half of a surrogate pair") from None
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _float(value: float) -> str:
    if not isfinite(value):
        raise YamlError("infinity and not-a-number cannot be represented in JSON")
    text = str(float_to_number(value))
    mantissa, e, exponent = text.partition("e")
    # Some readers treat a number with an exponent but without a point as a string.
    return text if not e or "." in mantissa else f"{mantissa}.0e{exponent}"


def _fits_literal(text: str) -> bool:
    return text[0] not in " \t\n" and not _NOT_LITERAL.search(text)


def _literal(text: str, indent: str) -> str:
    ending = "-" if text[-1] != "\n" else "+" if text[-2:] == "\n\n" else ""
    lines = text.removesuffix("\n").split("\n")
    body = "\n".join(indent + line if line else "" for line in lines)
    return f" |{ending}\n{body}\n"
