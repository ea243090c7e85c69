"""Masks for values of Secrets, wherever they appear in objects and texts."""

import hmac
import re
from collections.abc import Iterable
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at, metadata_of
from pergola.cli.support.needles import SHORTEST, decoded, needles, values_of

MASK: Final = "<masked>"
_PREFIX: Final = 32
_COPIES: Final = re.compile(
    r".*last-applied.*|kapp\.k14s\.io/original.*|objectset\.rio\.cattle\.io/.*"
    r"|openshift\.io/token-secret\.value"
)
"""Annotations with a copy of a manifest, which a status may repeat."""
_SENSITIVE: Final = re.compile(
    r"token|passw|secret|credential|private|api_?key|access_?key", re.IGNORECASE
)
_PATTERNS: Final = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    re.compile(r"(?<=Bearer )[\w+/=.~-]{8,}|(?<=Basic )[\w+/=.~-]{8,}"),
    re.compile(
        r"(?<![\w-])(?:client-key-data|client-certificate-data|token|password|id-token"
        r"|refresh-token|secretAccessKey|accessKeyID)\\?[\"']?\s*[:=]\s*\\?[\"']?"
        r"(?!<masked)(?P<value>[^\s\"',}\\]{4,})"
    ),
)
"""Credentials that are recognized without their Secret."""
_COMPRESSED: Final = re.compile(r"\s*H4sI")


class Masker:
    """Replaces values of Secrets by marks; equal values get equal marks within one archive.

    Args:
        salt: random, so that a guessed value cannot be compared with its mark.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._short: dict[str, dict[str, str]] = {}
        self._long: dict[str, dict[str, str]] = {}

    def learn(self, secrets: Iterable[JsonObject]) -> None:
        """Remember the values of Secrets."""
        for secret in secrets:
            for _, content in values_of(secret):
                mark = self._mark(content)
                for needle in needles(content):
                    self._add(needle, mark)

    def _add(self, needle: str, mark: str) -> None:
        """Put a text into the index by its first characters; thousands begin with `apiVersion`."""
        short = self._short.setdefault(needle[:SHORTEST], {})
        is_short = len(needle) < _PREFIX
        (short if is_short else self._long.setdefault(needle[:_PREFIX], {}))[needle] = mark

    def object(self, obj: JsonObject) -> JsonObject:
        """Return an object without values of Secrets, managed fields and copies of its manifest."""
        metadata = {
            name: each for name, each in metadata_of(obj).items() if name != "managedFields"
        }
        masked: JsonObject = {**obj, "metadata": metadata}
        if obj.get("kind") == SECRET.kind:
            values = map_at(obj, "data").items()
            masked["data"] = {key: self._mark(decoded(value)) for key, value in values}
        if "binaryData" in obj:
            masked["binaryData"] = dict.fromkeys(map_at(obj, "binaryData"), MASK)
        found = self._value(_without_environment(masked))
        return found if isinstance(found, dict) else {}

    def text(self, text: str) -> str:
        """Return a text without values of Secrets, and without credentials of other origin."""
        for pattern in _PATTERNS:
            text = pattern.sub(_masked, text)
        return self._without_needles(text)

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return MASK if _COMPRESSED.match(value) else self.text(value)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            kept = {key: each for key, each in value.items() if not _COPIES.fullmatch(key)}
            return {self._without_needles(key): self._value(each) for key, each in kept.items()}
        return value

    def _without_needles(self, text: str) -> str:
        parts: list[str] = []
        begin = at = 0
        last = len(text) - SHORTEST
        index = self._short
        while at <= last:
            short = index.get(text[at : at + SHORTEST])
            if short is None:
                at += 1
                continue
            found = self._long.get(text[at : at + _PREFIX], {})
            needle = _longest(found, text, at) or _longest(short, text, at)
            if needle:
                parts += [text[begin:at], found.get(needle) or short[needle]]
                begin = at = at + len(needle)
            else:
                at += 1
        return "".join([*parts, text[begin:]])

    def _mark(self, content: bytes) -> str:
        return f"<masked {hmac.digest(self._salt, content, 'sha256')[:4].hex()}>"


def _longest(found: dict[str, str], text: str, at: int) -> str:
    here = (needle for needle in found if text.startswith(needle, at))
    return max(here, key=len, default="")


def _masked(match: "re.Match[str]") -> str:
    if "value" not in match.re.groupindex:
        return MASK
    before = match.start("value") - match.start()
    return match.group()[:before] + MASK


def _without_environment(obj: JsonObject) -> JsonObject:
    """Return an object without literal values of sensitive variables in its containers."""
    if isinstance(obj.get("spec"), dict):
        return {**obj, "spec": _masked_variables(map_at(obj, "spec"))}
    return obj


def _masked_variables(spec: JsonObject) -> JsonObject:
    masked = {**spec}
    for field in ("containers", "initContainers", "ephemeralContainers"):
        if field in spec:
            masked[field] = [_container(each) for each in maps_at(spec, field)]
    for path in (("template",), ("jobTemplate",)):
        template = map_at(spec, *path)
        if template:
            masked[path[0]] = {**template, "spec": _masked_variables(map_at(template, "spec"))}
    return masked


def _container(container: JsonObject) -> JsonObject:
    if "env" not in container:
        return container
    variables: list[JsonValue] = [
        {**each, "value": MASK}
        if "value" in each and _SENSITIVE.search(str(each.get("name")))
        else each
        for each in maps_at(container, "env")
    ]
    return {**container, "env": variables}
