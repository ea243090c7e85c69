"""Common parts of the garden's extension resources (spec 21 §15.3)."""

from collections.abc import Iterable, Mapping
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.bundle.names import checksum, content
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, ExtensionKind
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest

CLASS: Final = "garden"
"""The class of extension resources for the garden rather than a Shoot or a Seed."""
CHECKSUM: Final = "checksum/references"
"""The annotation with the checksum of the objects that a resource refers to.

Extensions do not notice changed credentials themselves: the changed annotation makes the operator
request a reconciliation.
"""

_CLUSTER_WIDE: Final = (BACKUP_BUCKET, BACKUP_ENTRY)


def garden_resource(
    kind: ExtensionKind,
    name: str,
    spec: JsonObject,
    *,
    inputs: Iterable[JsonObject],
    labels: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return an extension resource of class `garden`.

    Args:
        inputs: The Secrets and ConfigMaps on which it depends.
    """
    values = {
        f"{obj['kind']}/{name_of(obj)}/{key}": value
        for obj in inputs
        for key, value in content(obj).items()
    }
    return manifest(
        kind.gvk.api_version,
        kind.kind,
        name,
        namespace="" if kind in _CLUSTER_WIDE else NAMESPACE,
        labels=labels,
        annotations={CHECKSUM: checksum(values)} if values else None,
        spec={"class": CLASS, **spec},
    )


def is_ours(obj: JsonObject) -> bool:
    """Return whether a live extension resource is the garden's; all others are left alone."""
    return map_at(obj, "spec").get("class") == CLASS


def referenced(landscape: Landscape, name: str) -> tuple[JsonObject, ...]:
    """Return a Secret that the Garden names, if it exists."""
    found = landscape.references.get((SECRET.kind, Key(NAMESPACE, name)))
    return (found,) if found is not None else ()


def secret_reference(name: str, namespace: str = NAMESPACE) -> JsonObject:
    """Return a reference to a Secret with credentials."""
    return {"name": name, "namespace": namespace}
