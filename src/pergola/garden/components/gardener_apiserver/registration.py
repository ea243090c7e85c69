"""The APIServices of gardener-apiserver, and its permissions in the virtual cluster.

The pods run in the runtime cluster. The Service in the virtual cluster therefore has no pods of its
own: its endpoint is the Service in the runtime cluster.
"""

import base64
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.bundle.versions import Version
from pergola.garden.components import authorities
from pergola.garden.components.gardener_apiserver.workload import NAME, PORT, PROGRAM
from pergola.garden.landscape import Landscape
from pergola.manifests import KUBE_SYSTEM, cluster_role, manifest, rule, service

APIS: Final = (
    ("core", "v1"),
    ("core", "v1beta1"),
    ("operations", "v1alpha1"),
    ("security", "v1alpha1"),
    ("seedmanagement", "v1alpha1"),
)
"""The API groups, without `.gardener.cloud`, and their versions."""

_ROLE: Final = "gardener.cloud:system:apiserver"
_DELEGATOR: Final = "gardener.cloud:apiserver:auth-delegator"
_READER: Final = "gardener.cloud:apiserver:auth-reader"
_RBAC: Final = "rbac.authorization.k8s.io"
_SERVICE_PORT: Final = 443
_GROUP_PRIORITY: Final = 10000
_VERSION_PRIORITY: Final = 20
# From 1.33 on kube-apiserver reads EndpointSlices; from 1.34 on it warns about Endpoints.
_SLICES_SINCE: Final = Version(1, 33)
_NO_ENDPOINTS_SINCE: Final = Version(1, 34)


def registration(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects of the virtual cluster."""
    return (
        *(_api_service(landscape, group, version) for group, version in APIS),
        *_permissions(),
        _service(),
        *_endpoints(landscape),
    )


def _api_service(landscape: Landscape, group: str, version: str) -> JsonObject:
    bundle = landscape.credentials.bundle(authorities.GARDENER).data["bundle.crt"]
    return manifest(
        "apiregistration.k8s.io/v1",
        "APIService",
        f"{version}.{group}.gardener.cloud",
        labels=PROGRAM.labels,
        spec={
            "group": f"{group}.gardener.cloud",
            "version": version,
            "service": {"name": NAME, "namespace": KUBE_SYSTEM},
            "caBundle": base64.b64encode(bundle).decode(),
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "versionPriority": _VERSION_PRIORITY,
        },
    )


def _permissions() -> list[JsonObject]:
    everything = [rule("*", ["*"], ["*"])]
    return [
        *cluster_role(_ROLE, everything, PROGRAM.account(), labels=PROGRAM.labels),
        _binding("ClusterRole", _DELEGATOR, "system:auth-delegator"),
        _binding("Role", _READER, "extension-apiserver-authentication-reader", KUBE_SYSTEM),
    ]


def _binding(kind: str, name: str, role: str, namespace: str = "") -> JsonObject:
    """Return a binding to a built-in role of Kubernetes."""
    return manifest(
        f"{_RBAC}/v1",
        f"{kind}Binding",
        name,
        namespace=namespace,
        labels=PROGRAM.labels,
        roleRef={"apiGroup": _RBAC, "kind": kind, "name": role},
        subjects=[PROGRAM.account()],
    )


def _service() -> JsonObject:
    port = {"port": _SERVICE_PORT, "protocol": "TCP", "targetPort": PORT}
    return service(NAME, KUBE_SYSTEM, PROGRAM.labels, port, labels=PROGRAM.labels)


def _endpoints(landscape: Landscape) -> Iterator[JsonObject]:
    address = landscape.gardener_api_server_address
    ports = [{"port": _SERVICE_PORT, "protocol": "TCP"}]
    if landscape.version < _NO_ENDPOINTS_SINCE:
        subset = {"addresses": [{"ip": address}], "ports": ports}
        yield manifest(
            "v1",
            "Endpoints",
            NAME,
            namespace=KUBE_SYSTEM,
            labels=PROGRAM.labels,
            subsets=[subset],
        )
    if landscape.version >= _SLICES_SINCE:
        yield manifest(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            NAME,
            namespace=KUBE_SYSTEM,
            labels={**PROGRAM.labels, "kubernetes.io/service-name": NAME},
            addressType="IPv6" if ":" in address else "IPv4",
            endpoints=[{"addresses": [address]}],
            ports=ports,
        )
