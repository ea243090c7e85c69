import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images import oci
from pergola.sandbox.images.catalogue import (
    CATALOGUE,
    named,
    qualified,
    repository_of,
    resolve,
)
from pergola.sandbox.images.layers import Entry
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.images.offer import BASE, Program
from pergola.sandbox.images.store import Image, Store

ETCD = Recipe([BASE, [Entry("usr/local/bin/etcd", b"etcd")]], ["/usr/local/bin/etcd"])
PROXY = Recipe([BASE, [Entry("usr/local/bin/proxy", b"proxy")]], ["/usr/local/bin/proxy"], "0:0")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "blobs")


def files(images: dict[str, Image], store: Store) -> dict[str, bytes]:
    stream = io.BytesIO(b"".join(oci.archive(images, store)))
    with tarfile.open(fileobj=stream) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]


def blob(content: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    return content["blobs/" + descriptor["digest"].replace(":", "/")]


def test_an_archive_contains_everything_its_index_refers_to(store: Store) -> None:
    content = files({"registry.k8s.io/etcd:v3": oci.write(ETCD, store)}, store)

    assert json.loads(content["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(content["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "registry.k8s.io/etcd:v3"
    manifest = json.loads(blob(content, entry))
    config = json.loads(blob(content, manifest["config"]))
    assert config["config"]["Entrypoint"] == ["/usr/local/bin/etcd"]
    assert config["config"]["User"] == "65532:65532"
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]
    for descriptor in (entry, manifest["config"], *manifest["layers"]):
        found = blob(content, descriptor)
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(found).hexdigest()}"
        assert descriptor["size"] == len(found)


def test_a_second_image_adds_only_its_own_layer(store: Store, tmp_path: Path) -> None:
    first = oci.write(ETCD, store)
    before = {path.name for path in (tmp_path / "blobs").iterdir()}
    second = oci.write(PROXY, store)

    assert first.blobs[1] == second.blobs[1]
    assert len(list((tmp_path / "blobs").iterdir())) == len(before) + 3
    content = files({"a:1": first, "b:1": second}, store)
    assert len([name for name in content if name.startswith("blobs/")]) == 7


def test_an_image_does_not_depend_on_where_it_was_built(store: Store, tmp_path: Path) -> None:
    assert oci.write(ETCD, store) == oci.write(ETCD, Store(tmp_path / "elsewhere"))


def test_an_unwritable_store_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(
        SandboxError, match=r"cannot store an image in .*file/blobs: Not a directory"
    ):
        oci.write(ETCD, Store(tmp_path / "file" / "blobs"))


def test_a_full_disk_is_reported_in_one_sentence() -> None:
    with pytest.raises(SandboxError, match=r"the disk of /dev is full: \d+ MB are needed"):
        FullStore(Path("/dev")).put(lambda: [bytes(1 << 20)])


class FullStore(Store):
    def _write(self, blob: object, chunks: object) -> None:
        Path("/dev/full").write_bytes(b"x")


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("registry.k8s.io/kube-apiserver:v1.30.1", "kube-apiserver"),
        ("registry.k8s.io/etcd@sha256:0123", "etcd"),
        ("registry.k8s.io/etcd:3.5.1@sha256:0123", "etcd"),
        ("rancher/local-path-provisioner", "local-path-provisioner"),
        ("registry.k8s.io/no-such-image:v1", None),
        ("localhost:5000/etcd", None),
    ],
)
def test_an_image_is_found_by_the_name_in_manifests(reference: str, name: str | None) -> None:
    offer = resolve(reference)

    assert (offer.name if offer else None) == name


def test_short_names_resolve_as_in_other_engines() -> None:
    assert repository_of("busybox") == "docker.io/library/busybox"
    assert repository_of("rancher/x:1") == "docker.io/rancher/x"
    assert repository_of("localhost:5000/x:1") == "localhost:5000/x"


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("rancher/x:1", "docker.io/rancher/x:1"),
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("registry.k8s.io/x@sha256:0123", "registry.k8s.io/x@sha256:0123"),
    ],
)
def test_names_are_completed_as_containerd_does(reference: str, full: str) -> None:
    assert qualified(reference) == full


def test_names_and_repositories_of_the_catalogue_are_unique() -> None:
    names = [offer.name for offer in CATALOGUE]
    repositories = [r for offer in CATALOGUE for r in (offer.repository, *offer.aliases)]

    assert len(set(names)) == len(names)
    assert len(set(repositories)) == len(repositories)
    assert [offer.name for offer in named(names)] == names


@pytest.mark.parametrize("offer", CATALOGUE, ids=lambda offer: offer.name)
def test_every_offer_has_a_version_and_a_program_in_its_module(offer: Any) -> None:
    assert offer.version.startswith("v")
    assert not isinstance(offer, Program) or offer.name in offer.module.packages
    assert offer.source
