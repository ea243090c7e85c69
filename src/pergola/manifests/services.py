"""Services and their ports."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.objects import manifest

HEADLESS: Final = {"clusterIP": "None"}
"""The part of a spec that makes DNS return the addresses of the pods."""


def service(
    name: str,
    namespace: str,
    pods: Mapping[str, str],
    *ports: JsonObject,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """Return a Service.

    Args:
        pods: labels of the pods behind the Service.
        spec: additional fields of its spec, such as `**HEADLESS`.
    """
    return manifest(
        "v1",
        "Service",
        name,
        namespace=namespace,
        labels=labels,
        annotations=annotations,
        spec={"type": "ClusterIP", **spec, "selector": dict(pods), "ports": list(ports)},
    )


def service_port(
    name: str, number: int, target: str | int | None = None, protocol: str = "TCP"
) -> JsonObject:
    """Return a port whose target is a port of the pods, by default with the same number."""
    return {
        "name": name,
        "port": number,
        "protocol": protocol,
        "targetPort": number if target is None else target,
    }
