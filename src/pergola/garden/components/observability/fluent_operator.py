"""fluent-operator: runs fluent-bit and generates its configuration (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.observability.operators import Operator, operator_objects
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    READ,
    empty_dir,
    env,
    from_pod,
    mount,
    requests,
    role,
    rule,
)

NAME: Final = "fluent-operator"

_LABELS: Final = {"app": NAME, "role": "logging", "gardener.cloud/role": "logging"}
_ROLE: Final = "gardener.cloud:logging:fluent-operator"
_VOLUME: Final = "env"
_USER: Final = 65532
_ALL: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_KINDS: Final = (
    "fluentbits",
    "clusterfluentbitconfigs",
    "clusterfilters",
    "clusterinputs",
    "clusteroutputs",
    "clusterparsers",
    "clustermultilineparsers",
    "collectors",
    "fluentbitconfigs",
    "filters",
    "outputs",
    "parsers",
    "multilineparsers",
)


def render(landscape: Landscape) -> Rendered:
    """Return the operator; the condition of the runtime components covers it."""
    operator = _operator()
    objects = (
        *operator_objects(operator, landscape),
        *role(_ROLE, NAMESPACE, _namespace_rules(), operator.account),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _operator() -> Operator:
    return Operator(
        name=NAME,
        labels=_LABELS,
        role=_ROLE,
        rules=_rules(),
        container={
            "args": ["--leader-elect=true", "--disable-component-controllers=fluentd"],
            "env": env(NAMESPACE=from_pod("metadata.namespace")),
            "resources": requests(cpu="4m", memory="50Mi"),
            "securityContext": {"allowPrivilegeEscalation": False},
            "volumeMounts": [mount(_VOLUME, "/fluent-operator")],
        },
        pod={
            "securityContext": {
                "fsGroup": _USER,
                "runAsGroup": _USER,
                "runAsNonRoot": True,
                "runAsUser": _USER,
            },
            "volumes": [empty_dir(_VOLUME)],
        },
        least_memory="128Mi",
        autoscaled=("memory",),
        scaler_labels={},
        is_spread=True,
    )


def _rules() -> list[JsonObject]:
    return [
        rule("fluentbit.fluent.io", _KINDS, _ALL),
        rule("", ["secrets", "configmaps", "serviceaccounts", "services"], _ALL),
        rule("apps", ["daemonsets", "statefulsets"], _ALL),
        rule("rbac.authorization.k8s.io", ["clusterrolebindings", "clusterroles"], _ALL),
        rule("", ["pods"], READ),
        rule("", ["namespaces"], READ),
        *granted_to_fluent_bit(),
    ]


def granted_to_fluent_bit() -> list[JsonObject]:
    """Return fluent-bit's rules, which the operator needs as well to grant them."""
    return [
        rule("extensions.gardener.cloud", ["clusters"], READ),
        rule("opentelemetry.io", ["opentelemetrycollectors"], READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
    ]


def _namespace_rules() -> list[JsonObject]:
    return [
        rule("coordination.k8s.io", ["leases"], ["create", "get", "watch", "update"]),
        rule("", ["events"], ["create", *READ, "patch"]),
        rule("apps", ["daemonsets", "statefulsets"], ["create", "delete", "patch", "update"]),
        rule("", ["secrets", "configmaps", "serviceaccounts", "services", "namespaces"], _ALL),
    ]


FLUENT_OPERATOR: Final = Component(name=NAME, deploy="Deploying fluent-operator", render=render)
