"""The part of a ShootState that belongs to one resource, and survives a move.

A ShootState lists, for each extension resource, its `state` and the names of the objects that the
state refers to, followed by those objects with their data.
"""

from typing import Final, NamedTuple

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    map_at,
    maps_at,
    name_of,
)
from pergola.extension_api.caller.errors import Unrestorable
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import NotFound

SHOOT_STATE: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "ShootState")
"""The kind that keeps the state of a Shoot while it moves to another Seed."""
# Metadata that is meaningful only in an object's previous location.
_OF_THE_PLACE: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class Saved(NamedTuple):
    """The entry of one resource in a ShootState.

    Attributes:
        state: for `status.state`; None if there is none.
        resources: for `status.resources`.
        objects: the objects that `resources` names, without a namespace.
    """

    state: JsonValue = None
    resources: tuple[JsonObject, ...] = ()
    objects: tuple[JsonObject, ...] = ()


def saved(shoot_state: JsonObject, kind: str, name: str, purpose: str = "") -> Saved:
    """Return the entry of a resource in a ShootState; empty if it has none.

    Raises:
        Unrestorable: it is not a ShootState, or lacks an object that the resource refers to.
    """
    if GroupVersionKind.of(shoot_state).group_kind != SHOOT_STATE.group_kind:
        found = shoot_state.get("kind") or "nothing"
        raise Unrestorable(f"expected a {SHOOT_STATE.group_kind}, but this is {found}")
    entry = _entry(shoot_state, kind, name, purpose)
    resources = tuple(maps_at(entry, "resources"))
    where = f"ShootState {name_of(shoot_state)}: {kind} {name}"
    return Saved(
        entry.get("state"),
        resources,
        tuple(_object(shoot_state, resource, where) for resource in resources),
    )


async def collect(client: Client, kind: ExtensionKind, obj: JsonObject) -> JsonObject:
    """Return a ShootState of one resource, with the objects that its state refers to.

    It has the name of the resource, and may contain secrets.

    Raises:
        Unrestorable: an object that the state refers to is missing.
        KubeError: an object cannot be read.
    """
    key, resources = Key.of(obj), maps_at(obj, "status", "resources")
    entry: JsonObject = {"kind": kind.kind, "name": key.name}
    if map_at(obj, "spec").get("purpose"):
        entry["purpose"] = map_at(obj, "spec")["purpose"]
    if map_at(obj, "status").get("state") is not None:
        entry["state"] = map_at(obj, "status")["state"]
    if resources:
        entry["resources"] = resources
    data = [await _read(client, key, map_at(resource, "resourceRef")) for resource in resources]
    return {
        "apiVersion": SHOOT_STATE.api_version,
        "kind": SHOOT_STATE.kind,
        "metadata": {"name": key.name},
        "spec": {"extensions": [entry], **({"resources": data} if data else {})},
    }


def _entry(shoot_state: JsonObject, kind: str, name: str, purpose: str) -> JsonObject:
    for entry in maps_at(shoot_state, "spec", "extensions"):
        if (entry.get("kind"), entry.get("name")) != (kind, name):
            continue
        if (entry.get("purpose") or "") == purpose:
            return entry
    return {}


def _object(shoot_state: JsonObject, resource: JsonObject, where: str) -> JsonObject:
    ref = map_at(resource, "resourceRef")
    desired = (ref.get("kind"), ref.get("name"))
    for candidate in maps_at(shoot_state, "spec", "resources"):
        if (candidate.get("kind"), candidate.get("name")) == desired:
            data = candidate.get("data")
            if isinstance(data, dict):
                return _portable(data, ref)
    raise Unrestorable(
        f"{where} refers to {desired[0]} {desired[1]}, for which spec.resources has no data"
    )


async def _read(client: Client, key: Key, ref: JsonObject) -> JsonObject:
    gvk = GroupVersionKind.parse(ref.get("apiVersion") or "v1", str(ref.get("kind")))
    place = Key(key.namespace, str(ref.get("name")))
    try:
        obj = await client.get(gvk, place)
    except NotFound:
        raise Unrestorable(
            f"status.resources of {key} names {gvk.kind} {place}, which does not exist"
        ) from None
    return {**ref, "data": _portable(obj, ref)}


def _portable(obj: JsonObject, ref: JsonObject) -> JsonObject:
    """Return an object in a form to create elsewhere, under the name in the reference."""
    metadata = {k: v for k, v in map_at(obj, "metadata").items() if k not in _OF_THE_PLACE}
    kept = {name: value for name, value in obj.items() if name != "status"}
    return {
        **kept,
        "apiVersion": ref.get("apiVersion") or obj.get("apiVersion") or "v1",
        "kind": ref.get("kind"),
        "metadata": {**metadata, "name": ref.get("name")},
    }
