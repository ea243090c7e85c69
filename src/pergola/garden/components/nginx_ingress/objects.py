"""The ingress controller as a component, with its configuration and its routes."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import istio, task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.nginx_ingress.permissions import LEASE, NAME, permissions
from pergola.garden.components.nginx_ingress.programs import (
    CONTROLLER,
    HTTPS,
    LABELS,
    backend,
    controller,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import flag, manifest

GATE: Final = "DisableNginxIngressInGarden"

_DEFAULTS: Final = {
    "enable-vts-status": "false",
    "server-name-hash-bucket-size": "256",
    "use-proxy-protocol": "false",
    "worker-processes": "2",
    "allow-snippet-annotations": "false",
    "annotations-risk-level": "Critical",
}
"""The default settings of nginx; all Ingresses are the garden's own, so all are trusted."""


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no ingress controller, or None if it has one."""
    if landscape.feature_gates.get(GATE, True):
        return f"feature gate {GATE} is on"
    return None


def configuration(landscape: Landscape) -> dict[str, str]:
    """Return the settings of nginx: the defaults, overridden by those in the Garden."""
    given = landscape.runtime.ingress.controller.provider_config or {}
    return _DEFAULTS | {name: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    return flag(value) if isinstance(value, bool) else str(value)


def render(landscape: Landscape) -> Rendered:
    """Return the controller, the default backend, and the routes to it."""
    config = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            CONTROLLER,
            namespace=NAMESPACE,
            labels=LABELS,
            data=configuration(landscape),
        )
    )
    objects = (
        config,
        *permissions(),
        *controller(landscape, name_of(config)),
        *backend(landscape),
        *_routes(landscape),
        _lease(),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _routes(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the routes from the gateway, one per domain because domains may overlap."""
    hosts = [f"*.{domain.name}" for domain in landscape.runtime.ingress.domains]
    yield istio.gateway(CONTROLLER, LABELS, istio.tls_server(hosts))
    yield istio.destination_rule(CONTROLLER, LABELS, CONTROLLER)
    for index, host in enumerate(hosts):
        yield istio.tls_route(
            f"{CONTROLLER}-{index}", LABELS, [host], CONTROLLER, HTTPS, gateway=CONTROLLER
        )


def _lease() -> JsonObject:
    """Return the Lease of the leader election, which is deleted with the controller."""
    return manifest(
        "coordination.k8s.io/v1",
        "Lease",
        LEASE,
        namespace=NAMESPACE,
        annotations={"resources.gardener.cloud/ignore": "true"},
    )


NGINX_INGRESS: Final = Component(
    name=NAME,
    deploy=task_names.NGINX_INGRESS,
    absent=absent,
    render=render,
    limit=120.0,
)
