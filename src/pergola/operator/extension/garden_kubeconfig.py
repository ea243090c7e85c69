"""Access to the virtual cluster for a chart's workloads, injected into them (spec 21 §13)."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at
from pergola.bundle import annotate
from pergola.manifests import mount, projected, secret_files
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY, KUBECONFIG_PATH

VARIABLE: Final = "GARDEN_KUBECONFIG"
"""The environment variable with the path of the kubeconfig."""

_VOLUME: Final = "garden-kubeconfig"
_READABLE: Final = 0o644
_GROUPS: Final = ("apps", "batch")


def with_kubeconfig(obj: JsonObject, generic: str, access: str) -> JsonObject:
    """Return a workload whose containers have a kubeconfig of the virtual cluster.

    Other objects, and workloads that set the variable themselves, are returned unchanged.

    Args:
        generic: The Secret with the kubeconfig that all components share.
        access: The Secret with the token.
    """
    if GroupVersionKind.of(obj).group not in _GROUPS:
        return obj
    changed = deepcopy(obj)
    spec = _pod_spec(changed)
    if not spec or any(_sets_variable(container) for container in _containers(spec)):
        return obj
    volumes = [each for each in maps_at(spec, "volumes") if each.get("name") != _VOLUME]
    spec["volumes"] = [*volumes, _volume(generic, access)]
    for container in _containers(spec):
        mounts = [each for each in maps_at(container, "volumeMounts") if each["name"] != _VOLUME]
        container["volumeMounts"] = [*mounts, mount(_VOLUME, KUBECONFIG_DIRECTORY, readOnly=True)]
        variable = {"name": VARIABLE, "value": KUBECONFIG_PATH}
        container["env"] = [*maps_at(container, "env"), variable]
    return annotate(changed)


def _pod_spec(obj: JsonObject) -> JsonObject:
    """Return the pod spec in a workload, for changes in place."""
    spec = map_at(obj, "spec")
    if "jobTemplate" in spec:
        spec = map_at(spec, "jobTemplate", "spec")
    return map_at(spec, "template", "spec")


def _containers(spec: JsonObject) -> Iterator[JsonObject]:
    for field in ("initContainers", "containers"):
        yield from maps_at(spec, field)


def _sets_variable(container: JsonObject) -> bool:
    return any(each.get("name") == VARIABLE for each in maps_at(container, "env"))


def _volume(generic: str, access: str) -> JsonObject:
    return projected(
        _VOLUME,
        secret_files(generic, {"kubeconfig": "kubeconfig"}),
        secret_files(access, {"token": "token"}),
        mode=_READABLE,
    )
