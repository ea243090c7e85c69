"""Built-in APIs of Kubernetes that `--runtime-config` can switch on or off, by version."""

from functools import cache
from typing import Final

from pergola.api.known.kubernetes_versions import Minor, Version, tabled
from pergola.api.known.version_ranges import Range, range_of, rows

REQUIRED: Final = (
    "v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "discovery.k8s.io/v1/endpointslices",
    "events.k8s.io/v1/events",
)
"""APIs that even a cluster without nodes requires."""

# No supported version serves these, but settings may name them, as older manifests do.
_FORMER: Final = frozenset(
    {
        "apps/v1beta1",
        "apps/v1beta2",
        "autoscaling/v2beta1",
        "autoscaling/v2beta2",
        "batch/v1beta1",
        "certificates.k8s.io/v1beta1",
        "coordination.k8s.io/v1beta1",
        "discovery.k8s.io/v1beta1",
        "events.k8s.io/v1beta1",
        "extensions/v1beta1",
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "flowcontrol.apiserver.k8s.io/v1beta2",
        "flowcontrol.apiserver.k8s.io/v1beta3",
        "networking.k8s.io/v1alpha1",
        "networking.k8s.io/v1beta1",
        "node.k8s.io/v1alpha1",
        "node.k8s.io/v1beta1",
        "policy/v1beta1",
        "rbac.authorization.k8s.io/v1alpha1",
        "rbac.authorization.k8s.io/v1beta1",
        "scheduling.k8s.io/v1alpha1",
        "scheduling.k8s.io/v1beta1",
        "storage.k8s.io/v1alpha1",
        "storage.k8s.io/v1beta1",
    }
)


def versions_of_api(name: str) -> Range | None:
    """Return the versions that know an API, or None if it does not exist.

    Args:
        name: `group/version` or `group/version/resource`; the core group is omitted, as in `v1`.
    """
    if name in _FORMER or (name.count("/") > 1 and name.rpartition("/")[0] in _FORMER):
        return Range(None, None)
    return _table().get(name)


def is_api_name(name: str) -> bool:
    """Return whether a text is well-formed as the name of an API."""
    parts = name.split("/")
    if parts[0] == "v1":
        return len(parts) <= 2
    return len(parts) in (2, 3)


def has_resource(name: str) -> bool:
    """Return whether the name of an API names a resource."""
    return name.count("/") == (1 if name.startswith("v1/") else 2)


def required_by(name: str) -> str | None:
    """Return the required API that becomes unavailable if this one is disabled, or None."""
    of_version = name.rpartition("/")[0] if has_resource(name) else name
    for required in REQUIRED:
        if required in (name, of_version) or required.startswith(f"{name}/"):
            return required
    return None


def is_unknown_resource(name: str, version: Version) -> bool:
    """Return whether a version lacks a resource of its own API groups.

    Args:
        name: `resource` of the core group, or `resource.group`. Resources of unknown groups may be
            custom ones and count as known.
    """
    resource, _, group = name.partition(".")
    known = _resources_by_group(tabled(version)).get(group)
    return known is not None and resource not in known


@cache
def _resources_by_group(version: Minor) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, versions in _table().items():
        if has_resource(name) and version in versions:
            *group, _, resource = name.split("/")
            found.setdefault("".join(group), set()).add(resource)
    return {group: frozenset(resources) for group, resources in found.items()}


@cache
def _table() -> dict[str, Range]:
    return {name: range_of(since, until) for name, since, until in rows("kubernetes_apis.txt")}
