"""The stand-in for backups of etcd: its pods and its clients."""

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.patches import apply_merge_patch
from pergola.sandbox.simulated.backup_restore import application
from pergola.sandbox.simulated.etcd_manifests import objects

TLS: JsonObject = {
    "serverTLSSecretRef": {"name": "server"},
    "tlsCASecretRef": {"name": "authority", "dataKey": "bundle.crt"},
}
ETCD: JsonObject = {
    "apiVersion": "druid.gardener.cloud/v1alpha1",
    "kind": "Etcd",
    "metadata": {"name": "main", "namespace": "garden", "uid": "1", "labels": {"a": "b"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "etcd"}},
        "labels": {"app": "etcd"},
        "etcd": {"clientUrlTls": TLS},
        "backup": {"tls": TLS},
    },
}
STORE: JsonObject = {"spec": {"backup": {"store": {"provider": "aws"}}}}


def test_only_an_etcd_with_a_store_has_pods_for_backups() -> None:
    names = [(obj["kind"], Key.of(obj).name) for obj in objects(ETCD)]
    assert names == [("Service", "main-client"), ("StatefulSet", "main")]
    *_, added = objects(apply_merge_patch(ETCD, STORE))
    assert Key.of(added) == Key("garden", "main-backup-restore")


def test_the_service_forwards_each_port_to_one_pod() -> None:
    service, *workloads = objects(apply_merge_patch(ETCD, STORE))
    targets = {port["targetPort"] for port in maps_at(service, "spec", "ports")}
    templates = [map_at(each, "spec", "template") for each in workloads]
    selector = map_at(service, "spec", "selector").items()
    assert all(selector <= map_at(each, "metadata", "labels").items() for each in templates)
    named = [
        {port["name"] for port in maps_at(container, "ports")} & targets
        for each in templates
        for container in maps_at(each, "spec", "containers")
    ]
    assert named == [{"client"}, {"backup-restore"}]


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/snapshot/full", 401)])
async def test_only_probes_need_no_client_certificate(path: str, status: int) -> None:
    async with TestClient(TestServer(application())) as client:
        answer = await client.get(path)
        assert answer.status == status
