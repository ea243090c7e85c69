"""The folders of a pod's volumes on this machine."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.sandbox.process_node.folders import Folders

VOLUMES: list[JsonObject] = [
    {"name": "sockets", "emptyDir": {}},
    {"name": "access", "secret": {"secretName": "access"}},
    {"name": "access-other", "secret": {"secretName": "access-other"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data-etcd-0"}},
    {"name": "kubelet", "hostPath": {"path": "/var/lib/kubelet"}},
]


def container(name: str, **mounts: str) -> JsonObject:
    """Return a container with mounts by volume; `_` stands for a hyphen."""
    found = [{"name": each.replace("_", "-"), "mountPath": path} for each, path in mounts.items()]
    return {"name": name, "volumeMounts": found}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    pod: JsonObject = {"metadata": {"namespace": "garden"}, "spec": {"volumes": VOLUMES}}
    (tmp_path / "short").mkdir()
    return Folders(pod, own=tmp_path / "own", short=tmp_path / "short", claims=tmp_path / "claims")


def test_containers_share_volumes_but_not_the_files_of_their_own(
    folders: Folders, tmp_path: Path
) -> None:
    driver = folders.make(container("driver", sockets="/var/lib/sockets", access="/var/run/access"))
    sidecar = folders.make(container("sidecar", sockets="/csi", access_other="/var/run/access"))
    assert driver["/var/lib/sockets"] == sidecar["/csi"]
    assert driver["/var/lib/sockets"].parent == tmp_path / "short"
    assert driver["/var/run/access"] != sidecar["/var/run/access"]
    assert all(folder.is_dir() for folder in (*driver.values(), *sidecar.values()))


def test_the_data_of_claims_outlives_the_pod(folders: Folders, tmp_path: Path) -> None:
    made = folders.make(container("etcd", sockets="/sockets", data="/var/etcd", access="/access"))
    assert made["/var/etcd"] == tmp_path / "claims" / "garden" / "data-etcd-0"
    folders.remove()
    assert [path for path, folder in made.items() if folder.exists()] == ["/var/etcd"]


def test_folders_of_the_host_and_mounts_without_a_volume_are_left_out(folders: Folders) -> None:
    made = folders.make(container("node", kubelet="/var/lib/kubelet", unknown="/somewhere"))
    assert made == {}


def test_a_part_of_a_secret_is_a_file_and_a_part_of_a_volume_a_folder(folders: Folders) -> None:
    parts = container("etcd", access="/etc/tls.crt", data="/var/etcd")
    for mount in parts["volumeMounts"]:
        mount["subPath"] = "part"
    made = folders.make(parts)
    assert made["/var/etcd"].name == "part"
    assert made["/var/etcd"].is_dir()
    assert made["/etc/tls.crt"].parent.is_dir()
    assert not made["/etc/tls.crt"].exists()
