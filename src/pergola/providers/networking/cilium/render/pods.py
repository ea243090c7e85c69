"""Common parts of cilium's pods: labels, environment, probes and the namespace."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.manifests import KUBE_SYSTEM, env, from_pod, http_probe, manifest, service
from pergola.manifests.labels import CRITICAL_COMPONENT, SYSTEM_COMPONENT
from pergola.providers.networking.cilium.values import Values

PART_OF: Final = {"app.kubernetes.io/part-of": "cilium"}
CRITICAL: Final = {**CRITICAL_COMPONENT, **SYSTEM_COMPONENT}
CONFIG_MOUNT: Final = "/tmp/cilium/config-map"  # noqa: S108 - in the container

in_kube_system = partial(manifest, namespace=KUBE_SYSTEM)


def app(name: str) -> dict[str, str]:
    """Return the labels of one of cilium's programs."""
    return {"k8s-app": name, "app.kubernetes.io/name": name, **PART_OF}


def dual_stack_service(
    name: str, pods: Mapping[str, str], *ports: JsonObject, **more: Any
) -> JsonObject:
    """Return a Service with an address of each IP family of the cluster."""
    return service(name, KUBE_SYSTEM, pods, *ports, ipFamilyPolicy="PreferDualStack", **more)


def scraped(number: int) -> dict[str, str]:
    """Return the annotations that let a Prometheus in the Shoot discover metrics."""
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(number)}


def identity_env() -> list[JsonObject]:
    """Return the environment variables with a program's node and namespace."""
    return env(
        K8S_NODE_NAME=from_pod("spec.nodeName"),
        CILIUM_K8S_NAMESPACE=from_pod("metadata.namespace"),
    )


def api_server_env(values: Values) -> list[JsonObject]:
    """Return the address of the API server, needed before anything routes its Service."""
    server = values.api_server
    if server is None:
        return []
    return env(KUBERNETES_SERVICE_HOST=server.host, KUBERNETES_SERVICE_PORT=str(server.port))


def loopback(values: Values) -> str:
    """Return the node's own address in a family that is in use."""
    return "127.0.0.1" if values.ipv4 else "::1"


def local_probe(values: Values, number: int, **timing: JsonValue) -> JsonObject:
    """Return a probe of a program in the network of its node."""
    return http_probe("/healthz", number, host=loopback(values), **timing)
