"""The permissions of the autoscaler's three programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.landscape import NAMESPACE
from pergola.manifests import READ, account, manifest, role, rule

ADMISSION_CONTROLLER: Final = "vpa-admission-controller"
RECOMMENDER: Final = "vpa-recommender"
UPDATER: Final = "vpa-updater"
LABELS: Final = {"gardener.cloud/role": "vpa"}

_PREFIX: Final = "gardener.cloud:vpa:source:"
_RBAC: Final = "rbac.authorization.k8s.io"
_AUTOSCALING: Final = "autoscaling.k8s.io"
_LEASES: Final = "coordination.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_REPLACED: Final = {"resources.gardener.cloud/delete-on-invalid-update": "true"}
"""Replaces a binding to another role, because the role of a binding is immutable."""


@dataclass(frozen=True, slots=True)
class _Permission:
    """A ClusterRole, and the programs that are bound to it."""

    name: str
    programs: tuple[str, ...]
    rules: Sequence[JsonObject]
    binding: str = ""


_EVENTS: Final[JsonObject] = {
    "apiGroups": ["", "events.k8s.io"],
    "resources": ["events"],
    "verbs": ["create", *READ, "patch", "update"],
}
_REPLICA_SETS: Final[JsonObject] = {
    "apiGroups": ["apps", "extensions"],
    "resources": ["replicasets"],
    "verbs": ["get"],
}
_SCALED: Final = ("daemonsets", "deployments", "replicasets", "statefulsets")
_PERMISSIONS: Final = (
    _Permission(
        "actor",
        (RECOMMENDER, UPDATER),
        (
            rule("", ["pods", "nodes", "limitranges"], READ),
            _EVENTS,
            rule(_AUTOSCALING, ["verticalpodautoscalers"], READ),
            rule(_LEASES, ["leases"], READ),
        ),
    ),
    _Permission(
        "admission-controller",
        (ADMISSION_CONTROLLER,),
        (
            rule("", ["pods", "configmaps", "nodes", "limitranges"], READ),
            rule(
                _ADMISSION, ["mutatingwebhookconfigurations"], ["create", "delete", "get", "list"]
            ),
            rule(_AUTOSCALING, ["verticalpodautoscalers"], READ),
            rule(_LEASES, ["leases"], ["create", "update", *READ]),
        ),
    ),
    _Permission(
        "checkpoint-actor",
        (RECOMMENDER,),
        (
            rule(
                _AUTOSCALING,
                ["verticalpodautoscalercheckpoints"],
                [*READ, "create", "patch", "delete"],
            ),
            rule("", ["namespaces"], ["get", "list"]),
        ),
    ),
    _Permission("evictioner", (UPDATER,), (_REPLICA_SETS, rule("", ["pods/eviction"], ["create"]))),
    _Permission(
        "metrics-reader", (RECOMMENDER,), (rule("metrics.k8s.io", ["pods"], ["get", "list"]),)
    ),
    _Permission(
        "status-actor",
        (RECOMMENDER,),
        (rule(_AUTOSCALING, ["verticalpodautoscalers/status"], ["get", "patch"]),),
    ),
    _Permission(
        "target-reader",
        (ADMISSION_CONTROLLER, RECOMMENDER, UPDATER),
        (
            rule("*", ["*/scale"], ["get", "watch"]),
            rule("", ["replicationcontrollers"], READ),
            rule("apps", _SCALED, READ),
            rule("batch", ["jobs", "cronjobs"], READ),
            rule("druid.gardener.cloud", ["etcds", "etcds/scale"], READ),
        ),
    ),
    _Permission(
        "vpa-updater-in-place",
        (UPDATER,),
        (rule("", ["pods", "pods/resize"], ["patch"]),),
        binding="vpa-updater-in-place-binding",
    ),
)


def permissions() -> Iterator[JsonObject]:
    """Yield all roles and their bindings."""
    for permission in _PERMISSIONS:
        yield from _cluster_role(permission)
    for program in (RECOMMENDER, UPDATER):
        yield from role(
            f"{_PREFIX}leader-locking-{program}",
            NAMESPACE,
            [
                rule(_LEASES, ["leases"], ["create"]),
                rule(_LEASES, ["leases"], ["get", "watch", "update"], [program]),
            ],
            account(program, NAMESPACE),
            labels=LABELS,
        )


def _cluster_role(permission: _Permission) -> Iterator[JsonObject]:
    name = f"{_PREFIX}{permission.name}"
    version = f"{_RBAC}/v1"
    yield manifest(version, "ClusterRole", name, labels=LABELS, rules=list(permission.rules))
    yield manifest(
        version,
        "ClusterRoleBinding",
        f"{_PREFIX}{permission.binding or permission.name}",
        labels=LABELS,
        annotations=_REPLACED,
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        subjects=[account(program, NAMESPACE) for program in permission.programs],
    )
