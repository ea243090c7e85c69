"""The defaults of kinds that CustomResourceDefinitions define."""

from collections.abc import Iterable, Mapping

from pergola.api.objects import GroupKind, JsonObject, map_at, maps_at
from pergola.kube.equality.shapes import PLAIN, QUANTITY, Default, Each, Shape


def shapes_of(definitions: Iterable[JsonObject]) -> dict[GroupKind, Shape]:
    """Return the shapes of the kinds that definitions define, in their stored versions."""
    return {
        GroupKind(str(spec.get("group")), str(map_at(spec, "names").get("kind"))): _fields(schema)
        for spec in (map_at(definition, "spec") for definition in definitions)
        for version in maps_at(spec, "versions")
        if version.get("storage") and (schema := map_at(version, "schema", "openAPIV3Schema"))
    }


def shape_of_schema(schema: JsonObject) -> Shape:
    """Return the shape of values of a structural schema; for lists, that of their items."""
    if schema.get("x-kubernetes-int-or-string"):
        return QUANTITY
    if "items" in schema:
        return shape_of_schema(map_at(schema, "items"))
    if isinstance(schema.get("additionalProperties"), dict):
        return Each(shape_of_schema(map_at(schema, "additionalProperties")))
    return _fields(schema) if "properties" in schema else PLAIN


def _fields(schema: JsonObject) -> Mapping[str, Shape]:
    return {name: _field(field) for name, field in map_at(schema, "properties").items()}


def _field(schema: JsonObject) -> Shape:
    shape = shape_of_schema(schema)
    return Default(schema["default"], shape) if "default" in schema else shape
