"""The stand-in for istiod and the gateway of a Garden: Envoy accepts the configuration."""

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.objects import JsonObject, Key, maps_at
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Target
from pergola.garden.components.istio import INGRESS_NAMESPACE, INGRESS_PODS
from pergola.garden.landscape import Landscape
from pergola.pki import Authority
from pergola.sandbox.images import envoy
from pergola.sandbox.istiod.clusters import CLUSTER
from pergola.sandbox.istiod.credentials import entries_of
from pergola.sandbox.istiod.envoy import LISTENER, problems, render
from pergola.sandbox.istiod.selection import Objects, Proxy
from pergola.sandbox.progress import silent
from pergola.testing.shared import require_images
from tests.support.garden import COMPLETE, landscape

PROXY = Proxy(INGRESS_NAMESPACE, INGRESS_PODS)


@pytest.mark.parametrize("terminates", [True, False], ids=["terminated", "passed-through"])
def test_the_gateway_of_a_garden_serves_all_its_hosts(tmp_path: Path, terminates: bool) -> None:
    require_images("envoy")
    gates = {**landscape().feature_gates, "IstioTLSTermination": terminates}
    objects = list(runtime_objects(landscape(COMPLETE, feature_gates=gates)))
    found = Objects(
        gateways=of_kind(objects, "Gateway"),
        virtual_services=of_kind(objects, "VirtualService"),
        destination_rules=of_kind(objects, "DestinationRule"),
        services=of_kind(objects, "Service"),
        envoy_filters=of_kind(objects, "EnvoyFilter"),
        secrets=certificates(of_kind(objects, "Secret")),
    )

    assert list(problems(PROXY, found)) == []
    rendered = render(PROXY, found)
    served = {
        name
        for listener in rendered[LISTENER]
        for chain in listener["filter_chains"]
        for name in chain["filter_chain_match"]["server_names"]
    }
    assert served == {
        host
        for gateway in found.gateways
        for server in maps_at(gateway, "spec", "servers")
        for host in server["hosts"]
    }
    file = tmp_path / "envoy.json"
    file.write_text(json.dumps({"static_resources": static(rendered)}))
    line = [str(envoy.find(silent)), "--mode", "validate", "-c", str(file)]
    validation = subprocess.run(line, check=False, capture_output=True, text=True, timeout=300)
    assert validation.returncode == 0, validation.stderr


def runtime_objects(facts: Landscape) -> Iterator[JsonObject]:
    for component in CATALOG:
        if component.absent(facts) is None:
            rendered = component.objects(facts)
            yield from rendered.direct
            for managed in rendered.managed:
                if managed.target is Target.RUNTIME:
                    yield from managed.objects


def of_kind(objects: list[JsonObject], kind: str) -> list[JsonObject]:
    return [obj for obj in objects if obj["kind"] == kind]


def certificates(secrets: list[JsonObject]) -> dict[Key, dict[str, str]]:
    """Return the gateway's Secrets with real certificates instead of those of the landscape."""
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    authority = Authority.create("test", now, lifetime)
    pair = authority.issue_server("test", [], now, lifetime)
    real = {
        **dict.fromkeys(("tls.crt", "cert"), pair.public),
        **dict.fromkeys(("tls.key", "key"), pair.private),
        **dict.fromkeys(("ca.crt", "cacert"), authority.pair.public),
    }
    return {
        Key.of(secret): {name: b64encode(real[name]).decode() for name in entries_of(secret)}
        for secret in secrets
        if Key.of(secret).namespace == INGRESS_NAMESPACE
    }


def static(rendered: dict[str, list[JsonObject]]) -> JsonObject:
    """Return listeners and clusters as parts of a static configuration, without their types."""
    names = {"listeners": LISTENER, "clusters": CLUSTER}
    return {
        name: [{k: v for k, v in resource.items() if k != "@type"} for resource in rendered[kind]]
        for name, kind in names.items()
    }
