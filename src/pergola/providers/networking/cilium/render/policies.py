"""Policies of cilium's own kinds, which its operator installs when it starts (spec 40 §6.4)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.providers.networking.cilium.render.pods import in_kube_system
from pergola.providers.networking.cilium.values import Values

_CILIUM: Final = "cilium.io/v2"
_CLUSTER_DNS: Final = {"k8s-app": "kube-dns"}
_NODE_LOCAL_DNS: Final = {"k8s-app": "node-local-dns"}
_CLUSTER_DNS_PORT: Final = 8053
_DNS_PORT: Final = 53
_METRICS_PORTS: Final = (9253, 9353)


def policies(values: Values) -> list[JsonObject]:
    """Return the policies that admit DNS queries to their servers."""
    found = [_dns_from_remote_nodes()]
    return [*found, _redirect(), _node_local_dns()] if values.node_local_dns else found


def _dns_from_remote_nodes() -> JsonObject:
    """Allow DNS from nodes, which policies cannot distinguish from pods in the host network."""
    allowed = {
        "fromEntities": ["remote-node"],
        "toPorts": _ports([(_CLUSTER_DNS_PORT, "TCP"), (_CLUSTER_DNS_PORT, "UDP")]),
    }
    return in_kube_system(
        _CILIUM,
        "CiliumNetworkPolicy",
        "gardener.cloud--allow-dns-from-remote-nodes",
        annotations={
            "gardener.cloud/description": (
                "Lets addresses of other nodes that belong to no pod, such as cilium's DNS proxies,"
                " ask CoreDNS."
            )
        },
        spec={"endpointSelector": {"matchLabels": dict(_CLUSTER_DNS)}, "ingress": [allowed]},
    )


def _redirect() -> JsonObject:
    """Redirect queries to the Service of the cluster's DNS to the server of the same node."""
    ports = [
        {"name": "dns", "port": str(_DNS_PORT), "protocol": "UDP"},
        {"name": "dns-tcp", "port": str(_DNS_PORT), "protocol": "TCP"},
    ]
    return in_kube_system(
        _CILIUM,
        "CiliumLocalRedirectPolicy",
        "nodelocaldns",
        spec={
            "redirectFrontend": {
                "serviceMatcher": {"serviceName": "kube-dns", "namespace": KUBE_SYSTEM}
            },
            "redirectBackend": {
                "localEndpointSelector": {"matchLabels": dict(_NODE_LOCAL_DNS)},
                "toPorts": ports,
            },
        },
    )


def _node_local_dns() -> JsonObject:
    """Let the cluster query the DNS server of a node and read its metrics."""
    queries = {
        "fromEntities": ["cluster"],
        "toPorts": _ports([(_DNS_PORT, "UDP"), (_DNS_PORT, "TCP")]),
    }
    metrics = {
        "fromEntities": ["cluster"],
        "toPorts": _ports([(port, "TCP") for port in _METRICS_PORTS]),
    }
    return manifest(
        _CILIUM,
        "CiliumClusterwideNetworkPolicy",
        "nodelocaldns",
        spec={
            "endpointSelector": {
                "matchLabels": {**_NODE_LOCAL_DNS, "io.kubernetes.pod.namespace": KUBE_SYSTEM}
            },
            "ingress": [queries, metrics],
        },
    )


def _ports(ports: Sequence[tuple[int, str]]) -> list[JsonObject]:
    return [{"ports": [{"port": str(port), "protocol": protocol} for port, protocol in ports]}]
