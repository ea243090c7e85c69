"""References in the schema of a chart's values, which Helm would follow to files and servers."""

import re
from collections.abc import Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonValue

SCHEMA: Final = "values.schema.json"
_META_SCHEMA: Final = "$schema"
_LOADING: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef", _META_SCHEMA})
"""Keywords whose targets Helm loads."""
_SHOWN: Final = 100
_DRAFTS: Final = re.compile(
    r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?"
)
_LOCAL: Final = "#"


def schema_problem(text: bytes) -> str | None:
    """Return why a schema must not be used, or None.

    Helm loads whatever a schema refers to, from files as well as by HTTP, and quotes it in errors.
    """
    try:
        schema: JsonValue = orjson.loads(text)
    except ValueError as error:
        return f"is not valid JSON: {error}"
    for keyword, target in _references(schema):
        shown = repr(target[:_SHOWN])
        if keyword == _META_SCHEMA and not _DRAFTS.fullmatch(target):
            return f"has the unknown {keyword} {shown}: write a draft of json-schema.org"
        if keyword != _META_SCHEMA and not target.startswith(_LOCAL):
            return (
                f"has a {keyword} to {shown}, outside of the file: copy it below "
                '"$defs", and refer to it with "#/$defs/…"'
            )
    return None


def _references(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield all references, even those in parts that only a local one makes a schema."""
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            for name, part in here.items():
                if isinstance(part, str) and name in _LOADING:
                    yield name, part
            pending.extend(here.values())
        elif isinstance(here, list):
            pending.extend(here)
