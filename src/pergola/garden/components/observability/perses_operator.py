"""perses-operator: runs Perses and maintains its dashboards (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.operators import Operator, operator_objects
from pergola.garden.landscape import Landscape
from pergola.manifests import (
    READ,
    RUNTIME_DEFAULT,
    http_probe,
    requests,
    restricted,
    rule,
)

NAME: Final = "perses-operator"

_GROUP: Final = "perses.dev"
_KINDS: Final = ("perses", "persesdashboards", "persesdatasources", "persesglobaldatasources")
_ALL: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_HEALTH_PORT: Final = 8081
_METRICS_PORT: Final = 8082


def render(landscape: Landscape) -> Rendered:
    """Return the operator."""
    return Rendered(managed=(managed(NAME, *operator_objects(_operator(), landscape)),))


def _operator() -> Operator:
    return Operator(
        name=NAME,
        labels={"app": NAME},
        rules=_rules(),
        container={
            "args": [
                f"--health-probe-bind-address=:{_HEALTH_PORT}",
                f"--metrics-bind-address=:{_METRICS_PORT}",
            ],
            "env": [{"name": "ENABLE_WEBHOOKS", "value": "false"}],
            "livenessProbe": _probe("/healthz", 15, 20),
            "readinessProbe": _probe("/readyz", 5, 10),
            "resources": requests(cpu="10m", memory="64Mi"),
            "securityContext": restricted(),
        },
        pod={"securityContext": {"seccompProfile": RUNTIME_DEFAULT}},
        least_memory="64Mi",
    )


def _probe(path: str, delay: int, period: int) -> JsonObject:
    return http_probe(path, _HEALTH_PORT, initialDelaySeconds=delay, periodSeconds=period)


def _rules() -> list[JsonObject]:
    return [
        rule("apps", ["deployments", "statefulsets"], _ALL),
        rule("", ["events"], ["create", "patch"]),
        rule("", ["pods"], READ),
        rule("", ["configmaps", "secrets", "services"], _ALL),
        *(each for kind in _KINDS for each in _own(kind)),
    ]


def _own(kind: str) -> list[JsonObject]:
    return [
        rule(_GROUP, [kind], _ALL),
        rule(_GROUP, [f"{kind}/finalizers"], ["update"]),
        rule(_GROUP, [f"{kind}/status"], ["get", "patch", "update"]),
    ]


PERSES_OPERATOR: Final = Component(name=NAME, deploy="Deploying perses-operator", render=render)
