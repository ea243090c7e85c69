"""YAML and JSON as Kubernetes reads them from files and Secrets (spec 10 §4.3).

`kubectl` and controllers in Go use a dialect that no Python library supports, so our own rules
(`yaml_nodes`, `yaml_scalars`) turn the events of libyaml into JSON values. `dump` writes them for
people (`yaml_writer`).
"""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonValue
from pergola.kube.yaml_nodes import DEEPEST, TOO_DEEP, ValueLimit, read_value
from pergola.kube.yaml_scalars import YamlError, float_to_number
from pergola.kube.yaml_writer import dump

__all__ = ["Document", "ValueLimit", "YamlError", "dump", "parse", "parse_documents"]

_BOM: Final = b"\xef\xbb\xbf"
_SEPARATOR: Final = b"---"
_NO_CONTENT: Final = re.compile(rb"(?:[ \t\r\n]++|#[^\n]*+)*+")
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_JSON_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a stream.

    Attributes:
        index: counted from 0, including documents without content.
        value: its value; None if it has no content, or an error.
        error: why it cannot be read, or None; its line counts from the start of the stream.
        line: where it starts, counted from 1.
    """

    index: int
    value: JsonValue
    error: YamlError | None = None
    line: int = 1


def parse_documents(text: str | bytes, limit: ValueLimit | None = None) -> Iterator[Document]:
    """Yield all documents of a stream, even if some are broken.

    Documents are separated by lines that start with `---`; JSON objects may also directly follow
    one another. In a broken document, nothing after the first error is read.

    Args:
        limit: the limit of values in total; once exceeded, the stream ends with an error.
    """
    index = 0
    limit = limit or ValueLimit()
    for part in _parts(_encoded(text)):
        for document in _documents(part, index, limit):
            yield document
            index += 1
        if limit.is_exceeded:
            return


def parse(text: str | bytes) -> JsonValue:
    """Return the value of the only document; None if no document has content.

    Raises:
        YamlError: the document is broken, or there are several.
    """
    found: list[Document] = []
    for document in parse_documents(text):
        if document.error is not None:
            raise document.error
        if document.value is not None:
            found.append(document)
    if len(found) > 1:
        problem = "a second document starts here; only one is expected"
        raise YamlError(problem, found[1].line, 1)
    return found[0].value if found else None


class _Part(NamedTuple):
    """The text between two separators; `line` counts from 0."""

    text: bytes
    line: int
    error: YamlError | None = None


def _encoded(text: str | bytes) -> bytes:
    # A lone surrogate becomes invalid UTF-8, so that only its own document is in error.
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return data.removeprefix(_BOM)


def _parts(data: bytes) -> Iterator[_Part]:
    start = line = 0
    at = 0 if data.startswith(_SEPARATOR) else _next_separator(data, 0)
    while at >= 0:
        text = data[start:at]
        end = _end_of_line(data, at)
        separator_line = line + text.count(b"\n")
        beside = data[at + len(_SEPARATOR) : end].strip()
        if beside and not beside.startswith(b"#"):
            problem = "only a comment may follow the --- of a line"
            yield _Part(text, line, YamlError(problem, separator_line + 1, 1))
        elif text:
            yield _Part(text, line)
        start, line = end, separator_line + 1
        at = _next_separator(data, end - 1)
    if data[start:]:
        yield _Part(data[start:], line)


def _next_separator(data: bytes, start: int) -> int:
    at = data.find(b"\n" + _SEPARATOR, start)
    return at + 1 if at >= 0 else -1


def _end_of_line(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return end + 1 if end >= 0 else len(data)


def _documents(part: _Part, index: int, limit: ValueLimit) -> Iterator[Document]:
    if part.error is not None:
        yield Document(index, None, part.error, part.line + 1)
        return
    try:
        for line, value in _values(part.text, limit):
            yield Document(index, value, line=part.line + line + 1)
            index += 1
    except YamlError as error:
        line = part.line + max(error.line, 1)
        yield Document(index, None, YamlError(error.problem, line, error.column), line)


def _values(text: bytes, limit: ValueLimit) -> Iterator[tuple[int, JsonValue]]:
    """Yield values with their lines, counted from 0: first as JSON while possible, then as YAML."""
    start = _content(text, 0)
    done = 0
    if text.startswith(b"{", start):
        _check_json_size(text, limit)
        try:
            value = orjson.loads(text[start:])
        except orjson.JSONDecodeError:
            done = yield from _json_values(text, start, limit)
        else:
            yield text.count(b"\n", 0, start), _settled(value, 1, limit)
            return
    if not done or _content(text, done) < len(text):
        yield _yaml_value(text, done, limit)


def _check_json_size(text: bytes, limit: ValueLimit) -> None:
    """Refuse a text with too many values, before a parser allocates all of them.

    A value other than the first follows a comma or opens a container.
    """
    if _most_json_values(text) > limit.left:
        most = _most_json_values(_JSON_STRING.sub(b"", text))
        if most > limit.left:
            limit.spend(most)


def _most_json_values(text: bytes) -> int:
    return 1 + text.count(b",") + text.count(b"{") + text.count(b"[")


def _content(text: bytes, start: int) -> int:
    """Return the position of the first character that is neither blank nor in a comment."""
    skipped = _NO_CONTENT.match(text, start)
    return skipped.end() if skipped else start


def _json_values(
    text: bytes, start: int, limit: ValueLimit
) -> Generator[tuple[int, JsonValue], None, int]:
    """Yield consecutive JSON objects; return where they end, or 0 if there are none."""
    try:
        body = text[start:].decode()
    except UnicodeDecodeError:
        return 0
    position, line = 0, text.count(b"\n", 0, start)
    while body.startswith("{", position):
        try:
            end = _DECODER.raw_decode(body, position)[1]
            value = orjson.loads(body[position:end])
        except (ValueError, RecursionError):
            break
        yield line, _settled(value, 1, limit)
        end = _after_blanks(body, end)
        line += body.count("\n", position, end)
        position = end
    return start + len(body[:position].encode()) if position else 0


def _after_blanks(body: str, position: int) -> int:
    blanks = _BLANK.match(body, position)
    return blanks.end() if blanks else position


def _yaml_value(text: bytes, start: int, limit: ValueLimit) -> tuple[int, JsonValue]:
    line = text.count(b"\n", 0, start)
    try:
        value = read_value(text[start:] if start else text, limit)
    except YamlError as error:
        before = start - text.rfind(b"\n", 0, start) - 1 if error.line == 1 else 0
        raise YamlError(error.problem, line + error.line, before + error.column) from None
    return text.count(b"\n", 0, _content(text, start)), value


def _settled(value: JsonValue, depth: int, limit: ValueLimit) -> JsonValue:
    """Normalize JSON like the YAML reader: no floats without a fraction, limited nesting."""
    if depth > DEEPEST:
        raise YamlError(TOO_DEEP)
    if isinstance(value, dict):
        limit.spend(len(value))
        for name, item in value.items():
            if isinstance(item, dict | list):
                _settled(item, depth + 1, limit)
            elif isinstance(item, float):
                value[name] = float_to_number(item)
    elif isinstance(value, list):
        limit.spend(len(value))
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _settled(item, depth + 1, limit)
            elif isinstance(item, float):
                value[index] = float_to_number(item)
    return value
