"""Manifests on pages."""

from pergola.api.objects import JsonObject
from pergola.kube.yaml import parse_documents


def objects(text: str) -> list[JsonObject]:
    """Return the objects of a text with YAML documents."""
    return [part.value for part in parse_documents(text) if isinstance(part.value, dict)]
