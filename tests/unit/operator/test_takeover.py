"""Fields that are immutable or that clients depend on match existing landscapes.

Selectors, role references and volume claims are immutable; other programs know addresses, webhooks
and priorities. With other values, the operator could not take over a landscape.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.garden.components.catalog import CATALOG
from pergola.kube.yaml import parse
from pergola.operator.compare import Placed, rendered
from tests.support.garden import COMPLETE, landscape

TABLE: Final = Path(__file__).with_name("takeover.yaml")


def pairs(labels: JsonObject) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def selector(obj: JsonObject) -> JsonValue:
    return pairs(map_at(obj, "spec", "selector", "matchLabels"))


def address(obj: JsonObject) -> JsonValue:
    """Return the ports of a Service, and the pods behind it."""
    spec = map_at(obj, "spec")
    ports = [
        f"{port.get('name')} {port['port']}:{port.get('targetPort', port['port'])}"
        for port in maps_at(spec, "ports")
    ]
    kind = "headless" if spec.get("clusterIP") == "None" else spec.get("type", "ClusterIP")
    return f"{kind} [{', '.join(ports)}] to {pairs(map_at(spec, 'selector'))}"


def role(obj: JsonObject) -> JsonValue:
    return f"{obj['roleRef']['kind']} {obj['roleRef']['name']}"


def claims(obj: JsonObject) -> JsonValue:
    """Return the name and size of a workload's volume claim."""
    spec = map_at(obj, "spec")
    templates = maps_at(spec, "volumeClaimTemplates") or [
        map_at(spec, "storage", "volumeClaimTemplate")
    ]
    return [
        f"{map_at(each, 'metadata')['name']} "
        f"{map_at(each, 'spec', 'resources', 'requests')['storage']}"
        for each in templates
    ]


def etcd(obj: JsonObject) -> JsonValue:
    spec = map_at(obj, "spec")
    return [spec["volumeClaimTemplate"], spec["storageCapacity"], selector(obj)]


def webhooks(obj: JsonObject) -> JsonValue:
    """Return the address of each webhook."""
    return [f"{each['name']} {_target(map_at(each, 'clientConfig'))}" for each in obj["webhooks"]]


def _target(config: JsonObject) -> str:
    service = map_at(config, "service")
    if not service:
        return str(config["url"])
    return f"{service['namespace']}/{service['name']}{service.get('path', '')}"


def priority(obj: JsonObject) -> JsonValue:
    return int(obj["value"])


FACTS: Final[Mapping[str, Callable[[JsonObject], JsonValue]]] = {
    "Alertmanager": claims,
    "ClusterRoleBinding": role,
    "Deployment": selector,
    "Etcd": etcd,
    "MutatingWebhookConfiguration": webhooks,
    "PodDisruptionBudget": selector,
    "PriorityClass": priority,
    "Prometheus": claims,
    "RoleBinding": role,
    "Service": address,
    "StatefulSet": claims,
    "ValidatingWebhookConfiguration": webhooks,
}


def facts(objects: list[Placed]) -> Iterator[tuple[str, str, JsonValue]]:
    """Yield kind, identity and facts of all objects that have some."""
    for each in objects:
        kind = each.identity.kind.kind
        if kind in FACTS:
            yield kind, str(each.identity.key), FACTS[kind](each.obj)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, JsonValue]]:
    """The facts of a complete Garden, by kind and identity."""
    table: dict[str, dict[str, JsonValue]] = {kind: {} for kind in FACTS}
    for kind, identity, fact in facts(rendered(landscape(COMPLETE), CATALOG)):
        table[kind][identity] = fact
    return table


@pytest.mark.parametrize("kind", FACTS)
def test_immutable_fields_match_existing_landscapes(
    kind: str, found: dict[str, dict[str, JsonValue]]
) -> None:
    table = parse(TABLE.read_text())

    assert isinstance(table, dict)
    assert found[kind] == table[kind]
