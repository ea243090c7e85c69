"""Policies of cilium's own kinds, which its operator installs when it starts (spec 40 §6.4)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium.render.parts import NAMESPACE, obj
from pergola.providers.networking.cilium.values import Values

_CILIUM: Final = "cilium.io/v2"
_CLUSTER_DNS: Final = {"k8s-app": "kube-dns"}
_NODE_LOCAL_DNS: Final = {"k8s-app": "node-local-dns"}
_CLUSTER_DNS_PORT: Final = 8053
_DNS_PORT: Final = 53
_METRICS_PORTS: Final = (9253, 9353)


def policies(values: Values) -> list[JsonObject]:
    """Who may ask for names, and who answers."""
    found = [_dns_from_remote_nodes()]
    return [*found, _redirect(), _node_local_dns()] if values.node_local_dns else found


def _dns_from_remote_nodes() -> JsonObject:
    """Pods in the network of their node are no pods to policies, and need names as well."""
    allowed = {
        "fromEntities": ["remote-node"],
        "toPorts": _ports([(_CLUSTER_DNS_PORT, "TCP"), (_CLUSTER_DNS_PORT, "UDP")]),
    }
    return obj(
        _CILIUM,
        "CiliumNetworkPolicy",
        "gardener.cloud--allow-dns-from-remote-nodes",
        spec={"endpointSelector": {"matchLabels": dict(_CLUSTER_DNS)}, "ingress": [allowed]},
    )


def _redirect() -> JsonObject:
    """Queries to the Service of the cluster's DNS are answered on the node where they are asked."""
    ports = [
        {"name": "dns", "port": str(_DNS_PORT), "protocol": "UDP"},
        {"name": "dns-tcp", "port": str(_DNS_PORT), "protocol": "TCP"},
    ]
    return obj(
        _CILIUM,
        "CiliumLocalRedirectPolicy",
        "nodelocaldns",
        spec={
            "redirectFrontend": {
                "serviceMatcher": {"serviceName": "kube-dns", "namespace": NAMESPACE}
            },
            "redirectBackend": {
                "localEndpointSelector": {"matchLabels": dict(_NODE_LOCAL_DNS)},
                "toPorts": ports,
            },
        },
    )


def _node_local_dns() -> JsonObject:
    """Everybody may ask the DNS of nodes; only nodes and the cluster read its metrics."""
    queries = {
        "fromEntities": ["cluster"],
        "toPorts": _ports([(_DNS_PORT, "UDP"), (_DNS_PORT, "TCP")]),
    }
    metrics = {
        "fromEntities": ["cluster"],
        "toPorts": _ports([(port, "TCP") for port in _METRICS_PORTS]),
    }
    return obj(
        _CILIUM,
        "CiliumClusterwideNetworkPolicy",
        "nodelocaldns",
        namespace=None,
        spec={
            "endpointSelector": {
                "matchLabels": {**_NODE_LOCAL_DNS, "io.kubernetes.pod.namespace": NAMESPACE}
            },
            "ingress": [queries, metrics],
        },
    )


def _ports(ports: Sequence[tuple[int, str]]) -> list[JsonObject]:
    return [{"ports": [{"port": str(port), "protocol": protocol} for port, protocol in ports]}]
