"""Conversion of libyaml's events to JSON values (spec 10 §4.3).

Manifests that nest too deeply or grow too large through aliases are rejected before they cost
anything.
"""

from collections.abc import Callable
from sys import maxsize
from typing import Final, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    StreamEndEvent,
)

from pergola.api.objects import JsonValue
from pergola.kube.yaml_scalars import YamlError, key, plain, tagged

DEEPEST: Final = 200  # orjson writes 254 levels; an object may still be embedded in another
TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep"
_OF_LIBYAML: Final = {"exceeded maximum nesting depth": TOO_DEEP}
"""Problems that libyaml finds while it looks ahead, and our words for them."""
_ALIASED: Final = 400_000  # the scalars and containers that all aliases of a document may add
_CHARACTERS: Final = 32  # this many bytes of a string count as one more of these
_MERGE: Final = "<<"
_EXPLICIT_MERGE: Final = "tag:yaml.org,2002:merge"


class ValueLimit:
    """A budget of values (scalars and containers) to read, which several texts can share."""

    def __init__(self, values: int = maxsize) -> None:
        self.left = values

    @property
    def is_exceeded(self) -> bool:
        """Whether more values were found than allowed, so that the result is incomplete."""
        return self.left < 0

    def spend(self, values: int) -> None:
        """Count values that were read, or are about to be.

        there are more values than allowed.
            YamlError: there are more than allowed.
        """
        self.left -= values
        if self.left < 0:
            raise YamlError("too many values")


def read_value(text: bytes, limit: ValueLimit) -> JsonValue:
    """Return the only document of a text; None if there is none.

    Raises:
        YamlError: the document is broken, too large, or followed by something else.
    """
    try:
        return _Document(text, limit).read()
    except yaml.reader.ReaderError as error:
        raise _unreadable(text, error) from None
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, error.problem or error.context or "no YAML"
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError(_OF_LIBYAML.get(problem, problem), line, column) from None


class _Document:
    """A builder of a document's value while libyaml reads it."""

    def __init__(self, text: bytes, limit: ValueLimit) -> None:
        self._limit = limit
        self._event = yaml.CSafeLoader(text).get_event
        # The same function, typed for positions where a container may or may not end.
        self._node = cast("Callable[[], NodeEvent]", self._event)
        self._item = cast("Callable[[], NodeEvent | CollectionEndEvent]", self._event)
        self._anchors: dict[str, JsonValue] = {}
        self._aliased = 0

    def read(self) -> JsonValue:
        value: JsonValue = None
        # Read to the end, because an error may follow the document.
        while type(event := self._event()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                value = self._value(self._node(), 0)
        return value

    def _value(self, event: NodeEvent, depth: int) -> JsonValue:
        self._limit.spend(1)
        if type(event) is ScalarEvent:
            value: JsonValue = _scalar(event)
        elif type(event) is AliasEvent:
            return self._alias(event, depth)
        elif depth >= DEEPEST:
            raise _at(event, TOO_DEEP)
        else:
            # An alias cannot refer to an unfinished container, which would contain itself.
            self._anchors.pop(event.anchor or "", None)
            is_map = type(event) is MappingStartEvent
            value = self._mapping(depth + 1) if is_map else self._sequence(depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _sequence(self, depth: int) -> JsonValue:
        items: list[JsonValue] = []
        while not isinstance(event := self._item(), CollectionEndEvent):
            items.append(self._value(event, depth))
        return items

    def _mapping(self, depth: int) -> JsonValue:
        """Build a map: explicit keys override merged ones, and later keys override earlier ones."""
        items: dict[str, JsonValue] = {}
        while not isinstance(event := self._item(), CollectionEndEvent):
            if type(event) is ScalarEvent and event.value == _MERGE and _is_merge(event):
                self._merge(items, event, depth)
            else:
                name = self._key(event, depth)
                items[name] = self._value(self._node(), depth)
        return items

    def _key(self, event: NodeEvent, depth: int) -> str:
        value = self._value(event, depth)
        if type(value) is str:
            return value
        try:
            return key(value)
        except YamlError as error:
            raise _at(event, error.problem) from None

    def _merge(self, items: dict[str, JsonValue], event: ScalarEvent, depth: int) -> None:
        value = self._value(self._node(), depth)
        # Of several merged maps, the first one wins.
        for source in reversed(value) if isinstance(value, list) else (value,):
            if not isinstance(source, dict):
                raise _at(event, "<< can merge only a map or a list of maps")
            items.update(source)

    def _alias(self, event: AliasEvent, depth: int) -> JsonValue:
        if event.anchor not in self._anchors:
            raise _at(event, "an alias refers to no earlier anchor; quote it if it is not an alias")
        try:
            return self._copy(self._anchors[event.anchor], depth)
        except YamlError as error:
            raise _at(event, error.problem) from None

    def _copy(self, value: JsonValue, depth: int) -> JsonValue:
        """Return a copy, so that changes in one place of the result do not affect another."""
        self._aliased += 1 + len(value) // _CHARACTERS if isinstance(value, str) else 1
        if self._aliased > _ALIASED:
            raise YamlError("the aliases repeat too many values")
        self._limit.spend(1)
        if isinstance(value, dict | list) and depth >= DEEPEST:
            raise YamlError(TOO_DEEP)
        if isinstance(value, dict):
            return {name: self._copy(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [self._copy(item, depth + 1) for item in value]
        return value


def _scalar(event: ScalarEvent) -> JsonValue:
    tag = event.tag
    if tag is None and not event.implicit[0]:
        return event.value
    try:
        return plain(event.value) if tag is None else tagged(tag, event.value)
    except YamlError as error:
        raise _at(event, error.problem) from None


def _is_merge(event: ScalarEvent) -> bool:
    return event.implicit[0] if event.tag is None else event.tag == _EXPLICIT_MERGE


def _at(event: NodeEvent, problem: str) -> YamlError:
    mark = event.start_mark
    return YamlError(problem, mark.line + 1, mark.column + 1) if mark else YamlError(problem)


def _unreadable(text: bytes, error: yaml.reader.ReaderError) -> YamlError:
    before = text[: error.position] if isinstance(error.position, int) else b""
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return YamlError(str(error.reason), line, column)
