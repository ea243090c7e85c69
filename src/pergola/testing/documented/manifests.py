"""Manifests on pages, and the fields that an API server would drop from them."""

from collections.abc import Iterator

from pergola.api.objects import JsonObject
from pergola.kube.yaml import parse_documents


def objects(text: str) -> list[JsonObject]:
    """Return the objects of a text with YAML documents."""
    return [part.value for part in parse_documents(text) if isinstance(part.value, dict)]


def lost(sent: object, kept: object, path: str = "") -> Iterator[str]:
    """Yield the fields that the API server drops because it does not know them."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            if not isinstance(kept, dict) or name not in kept:
                yield f"{path}.{name}"
            else:
                yield from lost(value, kept[name], f"{path}.{name}")
    elif isinstance(sent, list):
        others = kept if isinstance(kept, list) else []
        for each, other in zip(sent, others, strict=True):
            yield from lost(each, other, f"{path}[]")
