"""Simulated statuses: a site reports on objects without a program."""

from typing import Final

import pytest

from pergola.api.kinds import DEPLOYMENT, PVC, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.health import check, progressing
from pergola.health.extensions import check_extension
from pergola.kube.client import Client
from pergola.kube.patches import apply_merge_patch
from pergola.manifests import manifest, service, service_port
from pergola.sandbox.simulated import Site
from pergola.testing.crds import install_garden_crds
from pergola.testing.waiting import until

PROMETHEUS: Final = GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus")
DNS_RECORD: Final = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "DNSRecord")
LABELS: Final = {"app": "web"}
OPERATION: Final = "gardener.cloud/operation"


def deployment(**spec: object) -> JsonObject:
    container = {"name": "web", "image": "example.org/web:1"}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    selector = {"matchLabels": LABELS}
    return manifest(
        "apps/v1",
        "Deployment",
        "web",
        namespace="garden",
        spec={"selector": selector, "template": template, **spec},
    )


def is_rolled_out(obj: JsonObject) -> bool:
    return check(obj) is None and progressing(obj) is None


@pytest.mark.soak("chaos")
async def test_workloads_and_resources_without_programs_report_success(
    garden_world: Site,
) -> None:
    client: Client = garden_world.client
    key = Key("garden", "web")
    # The site is running already.
    await install_garden_crds(client, "prometheus-operator", "extensions")
    prometheus = manifest(
        PROMETHEUS.api_version, PROMETHEUS.kind, "web", namespace="garden", spec={"replicas": 2}
    )
    record = manifest(
        DNS_RECORD.api_version,
        DNS_RECORD.kind,
        "web",
        namespace="garden",
        annotations={OPERATION: "reconcile"},
        spec={
            "type": "example",
            "name": "api.example.org",
            "recordType": "A",
            "values": ["192.0.2.1"],
            "secretRef": {"name": "dns", "namespace": "garden"},
        },
    )
    balancer = service("web", "garden", LABELS, service_port("https", 443), type="LoadBalancer")
    claim = manifest(
        "v1",
        "PersistentVolumeClaim",
        "web",
        namespace="garden",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    )
    waiting = apply_merge_patch(
        record, {"metadata": {"name": "restored", "annotations": {OPERATION: "wait-for-state"}}}
    )
    for obj in (waiting, deployment(minReadySeconds=300), balancer, claim, prometheus, record):
        await client.create(obj)

    await until(client, DEPLOYMENT, key, is_rolled_out)
    await until(client, SERVICE, key, lambda obj: check(obj) is None)
    await until(client, PVC, key, lambda obj: map_at(obj, "status").get("phase") == "Bound")
    await until(client, PROMETHEUS, key, is_rolled_out)
    done = await until(client, DNS_RECORD, key, lambda obj: check_extension(obj) is None)
    assert OPERATION not in annotations_of(done)
    restored = await client.get(DNS_RECORD, Key("garden", "restored"))
    assert annotations_of(restored)[OPERATION] == "wait-for-state"
    assert "status" not in restored
