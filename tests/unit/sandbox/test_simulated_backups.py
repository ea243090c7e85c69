"""The stand-in for backups of etcd: its pods and its clients."""

from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer

from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.patches import apply_merge_patch
from pergola.sandbox.simulated.backup_restore import Folders, application
from pergola.sandbox.simulated.backups import Backups
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


async def test_a_snapshot_is_a_copy_that_replaces_the_one_before(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "data", tmp_path / "store" / "etcd-main")
    folders.data.mkdir()
    async with TestClient(TestServer(application(folders))) as client:
        for content in ("first", "second"):
            (folders.data / content).write_text(content)
            (folders.data / "0.tmp").write_text("not a part of the data")
            assert (await client.get("/snapshot/full?final=true")).status == 200
            assert (await client.get("/healthz")).status == 200
            (folders.data / content).unlink()
            assert [file.name for file in folders.snapshots.iterdir()] == [content]


async def test_without_a_folder_requests_for_snapshots_are_answered() -> None:
    async with TestClient(TestServer(application())) as client:
        answer = await client.get("/snapshot/full?final=true")
        assert await answer.json() == {"kind": "Full", "isFinal": True}


def test_only_an_etcd_whose_store_is_known_has_a_folder(tmp_path: Path) -> None:
    backups = Backups(tmp_path / "store", tmp_path / "volumes")
    assert backups.of_etcd(ETCD) is None
    store = {"container": "bucket", "prefix": "shoot--a--b/etcd-main"}
    etcd = apply_merge_patch(ETCD, {"spec": {"backup": {"store": store}}})
    assert backups.of_etcd(etcd) == tmp_path / "store/bucket/shoot--a--b/etcd-main"
