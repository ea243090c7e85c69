"""The controllers that run in a cluster without nodes (spec 20 §15.4)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.bundle.versions import Version
from pergola.garden.components.virtual_apis import runtime_config
from pergola.garden.landscape import Landscape

_ENABLED: Final = ("*", "bootstrapsigner", "tokencleaner")
_OF_NODES: Final = (
    "attachdetach",
    "cloud-node-lifecycle",
    "endpoint",
    "ephemeral-volume",
    "nodeipam",
    "nodelifecycle",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "pv-protection",
    # It writes tokens that never expire; in a garden, TokenRequest is the only source of tokens.
    "serviceaccount-token",
    "ttl",
)
_SINCE: Final[Mapping[str, Version]] = {
    "device-taint-eviction-controller": Version(1, 33),
    "podcertificaterequest-cleaner-controller": Version(1, 34),
    "podgroup-protection-controller": Version(1, 36),
    "resourcepoolstatusrequest-controller": Version(1, 36),
}
# Controllers that fail without an API, by its group (without the domain) and version.
_OF_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    "apps/v1": ("daemonset", "deployment", "replicaset", "statefulset"),
    "authentication/v1": ("attachdetach", "persistentvolume-expander"),
    "authorization/v1": ("csrapproving",),
    "autoscaling/v1": ("horizontalpodautoscaling",),
    "autoscaling/v2": ("horizontalpodautoscaling",),
    "batch/v1": ("cronjob", "job", "ttl-after-finished"),
    "certificates/v1": ("csrapproving", "csrcleaner", "csrsigning"),
    "coordination/v1": ("nodelifecycle", "storage-version-gc"),
    "discovery/v1": ("endpointslice", "endpointslicemirroring"),
    "policy/v1": ("disruption",),
    "rbac/v1": ("clusterrole-aggregation",),
}


def flag(landscape: Landscape) -> str:
    """Return the value of `--controllers`."""
    return ",".join([*_ENABLED, *(f"-{name}" for name in sorted(set(_disabled(landscape))))])


def _disabled(landscape: Landscape) -> Iterator[str]:
    yield from _OF_NODES
    yield from (name for name, since in _SINCE.items() if landscape.version.release >= since)
    for api, is_served in runtime_config(landscape).items():
        if not is_served:
            yield from _OF_APIS.get(_short(api), ())


def _short(api: str) -> str:
    """Return the key of `_OF_APIS`, such as `rbac/v1` for `rbac.authorization.k8s.io/v1`."""
    group, _, version = api.partition("/")
    return f"{group.partition('.')[0]}/{version}"
