"""YAML as Kubernetes reads it (spec 10 §4.3).

`kubectl` and the controllers written in Go read YAML 1.1 booleans and octals, but no dates, base-60
numbers or floats with an integer's value. No Python library agrees with that, so the events of
libyaml are turned into values here, by rules of our own. What comes out is JSON.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson
import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from pergola.api.objects import JsonValue
from pergola.kube.errors import KubeError

_DEPTH: Final = 200
_ALIASED_VALUES: Final = 1_000_000
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset(
    {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"([-+]?)(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
_BINARY: Final = "tag:yaml.org,2002:binary"
_STRING: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"


class YamlError(KubeError):
    """A document that is no YAML, or none that JSON could say; names line and column."""


Outcome: TypeAlias = "JsonValue | YamlError"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a stream.

    Attributes:
        index: counted from 0; empty documents count.
        value: what it says; None for an empty one, or if there is an error.
        error: why it cannot be read, or None.
    """

    index: int
    value: JsonValue
    error: YamlError | None


def parse_documents(data: str | bytes) -> Iterator[Document]:
    """All documents of a stream; one that is broken does not keep the others from being read.

    Documents are separated by lines that start with `---`; JSON objects may also just follow one
    another.
    """
    index = 0
    for text in _split(data):
        for value in _values(text):
            if isinstance(value, YamlError):
                yield Document(index, None, value)
            else:
                yield Document(index, value, None)
            index += 1


def parse(data: str | bytes) -> JsonValue:
    """The only document of a text.

    Raises:
        YamlError: it cannot be read, or there are several.
    """
    documents = [d for d in parse_documents(data) if d.value is not None or d.error is not None]
    if len(documents) > 1:
        raise YamlError(f"expected one document, found {len(documents)}")
    if documents and documents[0].error is not None:
        raise documents[0].error
    return documents[0].value if documents else None


def _split(data: str | bytes) -> Iterator[str]:
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        yield f"\0{error.reason} at byte {error.start}"
        return
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("---"):
            yield "\n".join(lines)
            # What follows the marker on its line belongs to the next document.
            lines = [line[3:]] if line[3:4] in ("", " ", "\t") else [line]
        else:
            lines.append(line)
    yield "\n".join(lines)


def _values(text: str) -> list[Outcome]:
    if text.startswith("\0"):
        return [YamlError(f"not UTF-8: {text[1:]}")]
    stripped = text.lstrip()
    if stripped.startswith("{"):
        found = _json_values(stripped)
        if found is not None:
            return found
    try:
        return [_Reader(text).document()]
    except YamlError as error:
        return [error]


def _json_values(text: str) -> list[Outcome] | None:
    """JSON objects, one after another; None if that is not what the text is."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _concatenated(text)
    try:
        return [_integral(value)]
    except YamlError as error:
        return [error]


def _concatenated(text: str) -> list[Outcome] | None:
    import json

    decoder = json.JSONDecoder()
    values: list[Outcome] = []
    position = 0
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(_integral(value))
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError, YamlError):
        return None
    return values


def _integral(value: JsonValue) -> JsonValue:
    """Floats without a fraction become integers, as the JSON that Go writes has them."""
    if isinstance(value, float):
        return _number(value, "")
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, float | dict | list):
                value[key] = _integral(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, float | dict | list):
                value[index] = _integral(item)
    return value


class _Reader:
    """Turns the events of one document into a value."""

    def __init__(self, text: str) -> None:
        self._events = yaml.parse(text, Loader=yaml.CLoader)
        self._anchors: dict[str, JsonValue] = {}
        self._aliased = 0

    def document(self) -> JsonValue:
        """The value of the document; None if it is empty."""
        value: JsonValue = None
        found = False
        while True:
            event = self._next()
            if isinstance(event, StreamEndEvent):
                return value
            if isinstance(event, DocumentStartEvent):
                if found:
                    raise _at(event, "a second document begins without a line of ---")
                value, found = self._value(self._next(), 0), True

    def _next(self) -> Event:
        try:
            event = next(self._events, None)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise YamlError(f"{where}{error.problem or error.context or 'no YAML'}") from None
        except yaml.YAMLError as error:
            raise YamlError(str(error).partition("\n")[0]) from None
        except (ValueError, UnicodeError) as error:
            raise YamlError(f"no YAML: {type(error).__name__}") from None
        return event if event is not None else StreamEndEvent()

    def _value(self, event: Event, depth: int) -> JsonValue:
        if depth > _DEPTH:
            raise _at(event, f"nested more than {_DEPTH} deep")
        if isinstance(event, AliasEvent):
            return self._alias(event)
        if isinstance(event, ScalarEvent):
            value: JsonValue = _scalar(event)
        elif isinstance(event, MappingStartEvent):
            value = self._mapping(depth)
        elif isinstance(event, SequenceStartEvent):
            value = self._sequence(depth)
        else:
            return None
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = value
        return value

    def _alias(self, event: AliasEvent) -> JsonValue:
        if event.anchor not in self._anchors:
            raise _at(event, f"unknown anchor {event.anchor}")
        value = self._anchors[event.anchor]
        # A few lines of aliases of aliases could stand for more values than memory holds.
        self._aliased += _size(value, _ALIASED_VALUES)
        if self._aliased > _ALIASED_VALUES:
            raise _at(event, "aliases stand for too many values")
        return _copy(value)

    def _sequence(self, depth: int) -> JsonValue:
        items: list[JsonValue] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> JsonValue:
        items: dict[str, JsonValue] = {}
        merged: list[JsonValue] = []
        while not isinstance(event := self._next(), MappingEndEvent):
            is_merge = isinstance(event, ScalarEvent) and event.value == _MERGE and not event.style
            key = self._value(event, depth + 1)
            value = self._value(self._next(), depth + 1)
            if is_merge:
                merged += value if isinstance(value, list) else [value]
            else:
                items[_key(key, event)] = value
        for source in merged:
            if not isinstance(source, dict):
                raise YamlError("<< merges something that is no map")
            items = {**source, **items}
        return items


def _scalar(event: ScalarEvent) -> JsonValue:
    text, tag = event.value, event.tag
    if tag == _BINARY:
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", "replace")
        except binascii.Error:
            raise _at(event, "!!binary is no base64") from None
    if event.style or tag in (_STRING, "!"):
        return text
    if tag is not None and not tag.startswith("tag:yaml.org,2002:"):
        return text
    return _plain(text, event)


def _plain(text: str, event: ScalarEvent) -> JsonValue:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    if _INFINITE.fullmatch(text):
        raise _at(event, f"{text} cannot be said in JSON")
    if (integer := _INTEGER.fullmatch(text)) and (value := _integer(*integer.groups())) is not None:
        return value
    if _FLOAT.fullmatch(text) and any(c in "0123456789" for c in text):
        return _number(float(text.replace("_", "")), text)
    return text


def _integer(sign: str, digits: str) -> int | None:
    digits = digits.replace("_", "")
    factor = -1 if sign == "-" else 1
    for prefix, base in (("0b", 2), ("0o", 8), ("0x", 16)):
        if digits.startswith(prefix):
            return factor * int(digits[2:], base) if digits[2:] else None
    is_octal = len(digits) > 1 and digits.startswith("0") and not set(digits) & {"8", "9"}
    return factor * int(digits, 8 if is_octal else 10)


def _number(value: float, text: str) -> int | float:
    if math.isinf(value) or math.isnan(value):
        raise YamlError(f"{text or value} cannot be said in JSON")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _key(key: JsonValue, event: Event) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    if isinstance(key, int | float):
        return str(key)
    raise _at(event, "a key must be a scalar")


def _size(value: JsonValue, limit: int) -> int:
    size, open_values = 0, [value]
    while open_values and size <= limit:
        size += 1
        here = open_values.pop()
        if isinstance(here, dict):
            open_values.extend(here.values())
        elif isinstance(here, list):
            open_values.extend(here)
    return size


def _copy(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _at(event: Event, problem: str) -> YamlError:
    mark = event.start_mark
    if mark is None:
        return YamlError(problem)
    return YamlError(f"line {mark.line + 1}, column {mark.column + 1}: {problem}")


# Writing


def dump(value: JsonValue) -> str:
    """Stable YAML for people: block style and sorted keys.

    Strings are quoted wherever any reader could take them for something else.
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        sort_keys=True,
        allow_unicode=True,
        width=4096,
    )
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Repeats what occurs twice instead of naming it once."""
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text and _is_block(text):
        return dumper.represent_scalar(_STRING, text, style="|")
    style = None if _is_plain(text) else '"'
    return dumper.represent_scalar(_STRING, text, style=style)


def _is_block(text: str) -> bool:
    lines = text.split("\n")
    return (
        text.isprintable() is False
        and not any(
            line != line.rstrip() or not line.replace("\t", "").isprintable() for line in lines
        )
        and not text[0].isspace()
    )


def _is_plain(text: str) -> bool:
    """Whether no reader of any version takes the text for anything but a string."""
    if not text or text[0] in "+-.0123456789=~<" or text != text.strip():
        return False
    return text.lower() not in {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


_Dumper.add_representer(str, _string)
