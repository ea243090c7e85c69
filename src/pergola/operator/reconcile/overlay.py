"""The objects written by a rehearsal, layered over those of a cluster."""

from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.garden.components.component import Identity
from pergola.kube.selectors import matches, parse_selector, select_name


class Overlay:
    """The written objects, layered over those of a cluster."""

    def __init__(self) -> None:
        self._objects: dict[tuple[GroupKind, Key], JsonObject | None] = {}

    def __contains__(self, identity: Identity) -> bool:
        return (identity.gvk.group_kind, identity.key) in self._objects

    def put(self, identity: Identity, obj: JsonObject | None) -> None:
        """Store an object, or its deletion."""
        self._objects[identity.gvk.group_kind, identity.key] = obj

    def get(self, identity: Identity) -> JsonObject | None:
        """Return an object in the requested version; None if it was deleted, or not written."""
        obj = self._objects.get((identity.gvk.group_kind, identity.key))
        return None if obj is None else _as(identity.gvk, obj)

    def listed(
        self, gvk: GroupVersionKind, namespace: str | None, labels: str | None, fields: str | None
    ) -> list[JsonObject]:
        """Return the objects that a list selects."""
        wanted = parse_selector(labels) if labels else {}
        return [
            _as(gvk, obj)
            for (kind, key), obj in self._objects.items()
            if kind == gvk.group_kind
            and obj is not None
            and namespace in (None, key.namespace)
            and fields in (None, select_name(key.name))
            and (not wanted or matches(wanted, labels_of(obj)))
        ]

    def defines(self, gvk: GroupVersionKind) -> bool:
        """Return whether a written definition defines a kind."""
        definitions = self.listed(CRD, None, None, None)
        specs = [map_at(definition, "spec") for definition in definitions]
        found = {(spec.get("group"), map_at(spec, "names").get("kind")) for spec in specs}
        return (gvk.group, gvk.kind) in found


def _as(gvk: GroupVersionKind, obj: JsonObject) -> JsonObject:
    return {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
