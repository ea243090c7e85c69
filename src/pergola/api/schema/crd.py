"""CustomResourceDefinitions of declared kinds."""

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Column, Kind, Object
from pergola.api.schema.structural import schema_of


def crd(cls: type[Object]) -> JsonObject:
    """Return the CustomResourceDefinition of a kind: one version, served and stored.

    Its schema is shared: do not change it.
    """
    kind = cls.resource
    metadata: JsonObject = {"name": f"{kind.plural}.{kind.group}"}
    if kind.labels:
        metadata["labels"] = dict(kind.labels)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(cls)],
        },
    }


def _names(kind: Kind) -> JsonObject:
    names: JsonObject = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
    }
    if kind.short:
        names["shortNames"] = list(kind.short)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _version(cls: type[Object]) -> JsonObject:
    kind = cls.resource
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(cls)},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    if kind.status:
        version["subresources"] = {"status": {}}
    return version


def _column(column: Column) -> JsonObject:
    return {"jsonPath": column.path, "name": column.name, "type": column.type}
