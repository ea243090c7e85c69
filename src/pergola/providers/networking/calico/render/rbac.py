"""The permissions of calico-node, Typha, the CNI plugin and the controllers (spec 40 §5.5)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, account, cluster_role, role, rule, service_account
from pergola.providers.networking.calico.render import kube_controllers, node, typha
from pergola.providers.networking.calico.render.conventions import CALICO
from pergola.providers.networking.calico.render.crds import (
    ADMIN_POLICIES,
    CLUSTER_SCOPED,
    NAMESPACED,
    POLICY,
    plural_of,
)
from pergola.providers.networking.calico.values import Values

CNI_PLUGIN: Final = "calico-cni-plugin"
_WATCH: Final = ("get", "list", "watch")
_OWN: Final = ("get", "list", "watch", "create", "update", "delete")
_IPAM: Final = ("blockaffinities", "ipamblocks", "ipamhandles")


def roles(values: Values) -> list[JsonObject]:
    """Return the accounts and roles of all components."""
    return [
        *_node(),
        *_cni_plugin(),
        *_tier_getter(),
        *(_typha() if values.typha else []),
        *(_kube_controllers() if values.kube_controllers else []),
    ]


def _node() -> list[JsonObject]:
    rules = [
        *_synced(),
        rule("", ["serviceaccounts/token"], ["create"], [CNI_PLUGIN]),
        rule("", ["nodes/status"], ["patch", "update"]),
        rule("", ["pods/status"], ["patch"]),
        rule("apps", ["daemonsets"], ["get"], [node.NAME]),  # to find out why the node is stopping
        rule(
            CALICO,
            ["bgpconfigurations", "bgppeers", "clusterinformations", "felixconfigurations"],
            ["create", "update"],
        ),
        rule(CALICO, ["ippools"], ["create", "update"]),
        rule(CALICO, ["tiers"], ["create"]),
        rule(CALICO, ["caliconodestatuses"], ["update"]),
        rule(CALICO, _IPAM, ["create", "update", "delete"]),
        rule(CALICO, ["ipamconfigs"], ["create"]),
    ]
    own = [  # to learn whether kubeadm knows the range of pods
        rule("", ["configmaps"], ["get"], ["kubeadm-config"])
    ]
    return [
        *_identity(node.NAME, rules),
        *role(node.NAME, KUBE_SYSTEM, own, account(node.NAME, KUBE_SYSTEM)),
    ]


def _typha() -> list[JsonObject]:
    """Return Typha's role: it reads on behalf of all nodes, and creates the tiers of policies."""
    rules = [
        *_synced(),
        rule(CALICO, ["clusterinformations"], ["create", "update"]),
        rule(CALICO, ["tiers"], ["create"]),
    ]
    return [
        service_account(typha.NAME, KUBE_SYSTEM),
        *cluster_role(typha.NAME, rules, account(typha.NAME, KUBE_SYSTEM)),
    ]


def _identity(name: str, rules: Sequence[JsonObject]) -> list[JsonObject]:
    return [
        service_account(name, KUBE_SYSTEM),
        *cluster_role(name, rules, account(name, KUBE_SYSTEM)),
    ]


def _synced() -> list[JsonObject]:
    kinds = sorted(plural_of(kind) for kind in (*CLUSTER_SCOPED, *NAMESPACED))
    return [
        rule(
            "", ["namespaces", "nodes", "pods", "serviceaccounts", "services", "endpoints"], _WATCH
        ),
        rule("discovery.k8s.io", ["endpointslices"], _WATCH),
        rule("networking.k8s.io", ["networkpolicies"], _WATCH),
        rule(POLICY, [plural_of(kind) for kind in ADMIN_POLICIES], _WATCH),
        rule(CALICO, kinds, _WATCH),
    ]


def _cni_plugin() -> list[JsonObject]:
    kinds = [*_IPAM, "clusterinformations", "ipamconfigs", "ippools", "ipreservations"]
    rules = [
        rule("", ["namespaces", "nodes", "pods"], ["get"]),
        rule("", ["pods/status"], ["patch"]),
        rule(CALICO, kinds, ["get", "list", "create", "update", "delete"]),
    ]
    return [
        service_account(CNI_PLUGIN, KUBE_SYSTEM),
        *cluster_role(CNI_PLUGIN, rules, account(CNI_PLUGIN, KUBE_SYSTEM)),
    ]


def _kube_controllers() -> list[JsonObject]:
    name = kube_controllers.NAME
    rules = [
        rule("", ["namespaces", "nodes", "pods"], _WATCH),
        rule("", ["services", "services/status"], [*_WATCH, "update"]),
        rule(CALICO, [*_IPAM, "hostendpoints", "ipamconfigs", "tiers"], _OWN),
        rule(CALICO, ["ippools"], ["list", "watch"]),
        rule(CALICO, ["ipreservations"], ["list"]),
        rule(
            CALICO,
            ["clusterinformations", "kubecontrollersconfigurations"],
            [*_WATCH, "create", "update"],
        ),
    ]
    return [
        service_account(name, KUBE_SYSTEM),
        *cluster_role(name, rules, account(name, KUBE_SYSTEM)),
    ]


def _tier_getter() -> list[JsonObject]:
    """Return the role for reading policies, which Calico allows only to readers of their tier."""
    subject: JsonObject = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": "system:kube-controller-manager",
    }
    rules: Sequence[JsonObject] = [rule("projectcalico.org", ["tiers"], ["get"])]
    return cluster_role("calico-tier-getter", rules, subject)
