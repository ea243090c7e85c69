"""The kinds of encrypted resources, as the virtual cluster serves them."""

from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at
from pergola.garden.landscape.encryption_at_rest import is_served_by_gardener
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.discovery import group_version_path
from pergola.runtime.logging import get_logger

log = get_logger("rotation")

_NEEDED: Final = frozenset({"get", "list", "patch"})


class NotServed(OperatorError):
    """The virtual cluster does not serve an encrypted resource of Gardener."""

    def __init__(self, resource: str) -> None:
        """Make the error of a resource, such as `shootstates.core.gardener.cloud`."""
        super().__init__(
            f"the virtual cluster does not serve {resource}, whose objects have to be rewritten: "
            "its APIService may be unavailable"
        )


async def kinds_of(client: Client, resources: Iterable[str]) -> dict[str, GroupVersionKind]:
    """Return the kind of each resource in the server's preferred version.

    Resources that are not served, or that cannot be listed and patched, have no objects and are
    skipped. Only the groups of these resources are read.

    Args:
        resources: Such as `secrets` and `shootstates.core.gardener.cloud`.

    Raises:
        NotServed: One is Gardener's, which must serve all of its own.
        KubeError: The API server refused, or did not answer.
    """
    names = sorted(resources)
    groups = {"": ["v1"]}
    if any("." in resource for resource in names):
        answer = orjson.loads(await client.get_raw("/apis"))
        groups |= {str(each["name"]): _versions(each) for each in maps_at(answer, "groups")}
    found: dict[str, GroupVersionKind] = {}
    for resource in names:
        plural, _, group = resource.partition(".")
        kind = await _kind(client, plural, group, groups.get(group, []))
        if kind is not None:
            found[resource] = kind
        elif is_served_by_gardener(resource):
            raise NotServed(resource)
        else:
            log.info("encrypted resource not served", resource=resource)
    return found


async def _kind(
    client: Client, plural: str, group: str, versions: Iterable[str]
) -> GroupVersionKind | None:
    for version in versions:
        answer = orjson.loads(await client.get_raw(group_version_path(group, version)))
        for served in maps_at(answer, "resources"):
            if served.get("name") == plural and set(served.get("verbs") or ()) >= _NEEDED:
                return GroupVersionKind(group, version, str(served["kind"]))
    return None


def _versions(group: JsonObject) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return list(dict.fromkeys(_listed(group)))


def _listed(group: JsonObject) -> Iterator[str]:
    yield str(map_at(group, "preferredVersion").get("version") or "")
    for each in maps_at(group, "versions"):
        yield str(each["version"])
