"""The forms in which the value of a Secret can appear in a text."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at

SHORTEST: Final = 8
"""Shorter values are masked in Secrets, and not searched elsewhere: every text contains them."""
_LARGE: Final = 4096
_TOKEN: Final = re.compile(r"[A-Za-z0-9+/_.~=-]{20,}")
_KINDS_OF_CHARACTERS: Final = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))
_STABLE: Final = ((0, 0), (1, 2), (2, 3))
"""Bytes before a value in a base64 text, and the characters that depend on them."""


def values_of(secret: JsonObject) -> Iterator[tuple[str, bytes]]:
    """Yield the keys and values of a Secret that are worth a search."""
    for key, value in map_at(secret, "data").items():
        content = decoded(value)
        if len(content.strip()) >= SHORTEST and not _is_own_namespace(secret, content):
            yield key, content


def decoded(value: JsonValue) -> bytes:
    """Return the content of a value in `data` of a Secret."""
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError):
        return str(value).encode()


def _is_own_namespace(secret: JsonObject, content: bytes) -> bool:
    """Return whether a value is the namespace, which is in Secrets with tokens."""
    return content == str(map_at(secret, "metadata").get("namespace") or "").encode()


def needles(content: bytes) -> Iterator[str]:
    """Yield the texts that contain a value or a credential in it, as they appear in other texts.

    As it is; without blanks around it; escaped in JSON, once and twice; in base64 anywhere in a
    larger base64 text, and in base64 of that; and, as it is, each long token in it, such as a line
    of a key.
    """
    yield from filter(_is_long_enough, _forms(content))
    stripped = content.strip()
    if stripped != content:
        yield from filter(_is_long_enough, _forms(stripped))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    for token in _TOKEN.findall(text):
        if token != text and all(kind.search(token) for kind in _KINDS_OF_CHARACTERS):
            yield token


def _forms(content: bytes) -> Iterator[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if text:
        yield text
        for ascii_only in (False, True):
            once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            yield from (once, json.dumps(once)[1:-1], _as_go(once))
    yield from _encoded(content)
    if len(content) <= _LARGE:
        yield from _encoded(base64.b64encode(content))


def _as_go(escaped: str) -> str:
    """Return JSON as Go escapes it."""
    for character in "<>&":
        escaped = escaped.replace(character, f"\\u{ord(character):04x}")
    return escaped


def _encoded(content: bytes) -> Iterator[str]:
    """Yield the characters that a value has in each base64 text that contains it."""
    for before, skipped in _STABLE:
        bits = 8 * (before + len(content))
        text = base64.b64encode(b"\0" * before + content).decode()[skipped : bits // 6]
        yield text
        if "+" in text or "/" in text:
            yield text.translate(str.maketrans("+/", "-_"))


def _is_long_enough(text: str) -> bool:
    return len(text) >= SHORTEST
