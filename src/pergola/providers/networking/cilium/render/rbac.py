"""Permissions of agents and operator: no more than they use."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    READ,
    account,
    cluster_role,
    role,
    rule,
    service_account,
)
from pergola.providers.networking.cilium.config_map import NAME as CONFIG_MAP
from pergola.providers.networking.cilium.render.pods import PART_OF
from pergola.providers.networking.cilium.values import Values

_LEASE: Final = ("create", "get", "update")
_AGENT: Final = "cilium"
_OPERATOR: Final = "cilium-operator"
_CILIUM: Final = "cilium.io"
_CUSTOM_RESOURCES: Final = (
    "ciliumbgpadvertisements",
    "ciliumbgpclusterconfigs",
    "ciliumbgpnodeconfigoverrides",
    "ciliumbgpnodeconfigs",
    "ciliumbgppeerconfigs",
    "ciliumcidrgroups",
    "ciliumclusterwideenvoyconfigs",
    "ciliumclusterwidenetworkpolicies",
    "ciliumegressgatewaypolicies",
    "ciliumendpoints",
    "ciliumendpointslices",
    "ciliumenvoyconfigs",
    "ciliumgatewayclassconfigs",
    "ciliumidentities",
    "ciliuml2announcementpolicies",
    "ciliumloadbalancerippools",
    "ciliumlocalredirectpolicies",
    "ciliumnetworkpolicies",
    "ciliumnodeconfigs",
    "ciliumnodes",
    "ciliumpodippools",
)


def rbac(values: Values) -> list[JsonObject]:
    """Return the identities of agents and operator, and their roles."""
    agent, operator = (account(name, KUBE_SYSTEM) for name in (_AGENT, _OPERATOR))
    return [
        service_account(_AGENT, KUBE_SYSTEM),
        *cluster_role(_AGENT, _agent(values), agent, labels=PART_OF),
        *role("cilium-config-agent", KUBE_SYSTEM, _agent_in_namespace(), agent, labels=PART_OF),
        service_account(_OPERATOR, KUBE_SYSTEM),
        *cluster_role(_OPERATOR, _operator(), operator, labels=PART_OF),
        *role(_OPERATOR, KUBE_SYSTEM, _operator_in_namespace(), operator, labels=PART_OF),
    ]


def _agent(values: Values) -> list[JsonObject]:
    rules = [
        rule("", ["namespaces", "services", "pods", "endpoints", "nodes"], READ),
        rule("", ["nodes/status"], ["patch"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
        rule("networking.k8s.io", ["networkpolicies"], READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
        rule(_CILIUM, _CUSTOM_RESOURCES, READ),
        rule(_CILIUM, ["ciliumidentities"], ["create", "update", "patch"]),
        rule(_CILIUM, ["ciliumendpoints"], ["create", "delete", "update", "patch"]),
        rule(_CILIUM, ["ciliumnodes"], ["create", "update", "patch"]),
        rule(
            _CILIUM,
            [
                "ciliumbgpnodeconfigs/status",
                "ciliumclusterwidenetworkpolicies/status",
                "ciliumendpoints/status",
                "ciliuml2announcementpolicies/status",
                "ciliumnetworkpolicies/status",
                "ciliumnodes/status",
            ],
            ["patch", "update"],
        ),
    ]
    announcements = values.config.l2_announcements
    if announcements is not None and announcements.enabled:
        rules.append(
            rule("coordination.k8s.io", ["leases"], ["create", "get", "update", "list", "delete"])
        )
    return rules


def _agent_in_namespace() -> list[JsonObject]:
    return [
        rule("", ["configmaps"], ["get"], [CONFIG_MAP]),
        # The agent looks for settings of its node, by name if it knows one.
        rule("", ["configmaps"], ["list", "watch"]),
        rule(_CILIUM, ["ciliumnodeconfigs"], READ),
    ]


def _operator() -> list[JsonObject]:
    """Clean up after deleted nodes and pods, and install cilium's kinds."""
    return [
        rule("", ["pods"], ["get", "list", "watch", "delete"]),
        rule("", ["nodes", "namespaces", "services", "endpoints"], READ),
        rule("", ["nodes", "nodes/status"], ["patch"]),
        rule("", ["services/status"], ["update", "patch"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
        rule("networking.k8s.io", ["networkpolicies"], READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], [*READ, "create"]),
        rule(
            "apiextensions.k8s.io",
            ["customresourcedefinitions"],
            ["update", "patch"],
            [f"{plural}.{_CILIUM}" for plural in _CUSTOM_RESOURCES],
        ),
        rule(_CILIUM, _CUSTOM_RESOURCES, READ),
        rule(_CILIUM, ["ciliumidentities"], ["create", "delete", "deletecollection", "update"]),
        rule(_CILIUM, ["ciliumendpoints"], ["delete", "deletecollection"]),
        rule(
            _CILIUM,
            ["ciliumendpointslices"],
            ["create", "update", "delete", "deletecollection", "patch"],
        ),
        # Policies that name groups of a cloud are copied, with the addresses of the groups.
        rule(
            _CILIUM,
            ["ciliumnetworkpolicies", "ciliumclusterwidenetworkpolicies"],
            ["create", "update", "patch", "deletecollection"],
        ),
        rule(_CILIUM, ["ciliumnodes"], ["create", "update", "delete", "patch"]),
        rule(_CILIUM, ["ciliumpodippools"], ["create"]),
        rule(_CILIUM, ["ciliumbgpnodeconfigs"], ["create", "update", "patch", "delete"]),
        rule(
            _CILIUM,
            [
                "ciliumbgpclusterconfigs/status",
                "ciliumbgpnodeconfigs/status",
                "ciliumbgppeerconfigs/status",
                "ciliumclusterwidenetworkpolicies/status",
                "ciliumloadbalancerippools/status",
                "ciliumnetworkpolicies/status",
                "ciliumnodes/status",
            ],
            ["patch", "update"],
        ),
    ]


def _operator_in_namespace() -> list[JsonObject]:
    return [
        rule("", ["configmaps"], ["get", "patch"], [CONFIG_MAP]),
        rule("coordination.k8s.io", ["leases"], _LEASE),
    ]
