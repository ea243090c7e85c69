"""The parts of the image: Debian packages by hash, and one archive for several architectures."""

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from pergola.sandbox.images import oci
from pergola.sandbox.images.layers import Entry
from pergola.sandbox.images.store import Store
from tools.release import debian
from tools.release.image import PLATFORMS

CERTIFICATES = ("b", "a")


def package(**files: bytes) -> bytes:
    """Return a Debian package with these files; `__` in a name is a slash."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name.replace('__', '/')}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("./usr/lib/link")
        link.type, link.linkname = tarfile.SYMTYPE, "target"
        tar.addfile(link)
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data.getvalue()}
    archived = b"!<arch>\n"
    for name, content in members.items():
        archived += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        archived += content + b"\n" * (len(content) % 2)
    return archived


def stored(content: bytes, folder: Path) -> debian.Package:
    digest = hashlib.sha256(content).hexdigest()
    (folder / digest).write_bytes(content)
    return debian.Package("amd64", "example", "1.0", digest, "pool/example.deb")


def test_files_are_where_debian_has_merged_folders_and_authorities_are_one_file(
    tmp_path: Path,
) -> None:
    content = package(
        lib__x__libc=b"c",
        usr__share__man__page=b"left out",
        **{f"usr__share__ca-certificates__mozilla__{name}": name.encode() for name in CERTIFICATES},
    )
    found = {entry.path: entry for entry in debian.entries([stored(content, tmp_path)], tmp_path)}

    assert found["usr/lib/x/libc"].content == b"c"
    assert found["lib"].target == "usr/lib"
    assert found["usr/lib/link"].target == "target"
    assert found["etc/ssl/certs/ca-certificates.crt"].content == b"ab"
    assert not any("share" in path for path in found)


def test_a_package_with_another_hash_is_refused(tmp_path: Path) -> None:
    wrong = stored(package(), tmp_path)._replace(sha256="0" * 64)
    (tmp_path / wrong.sha256).write_bytes(b"other")
    with pytest.raises(SystemExit, match=r"pool/example\.deb does not have the hash"):
        debian.download(wrong, tmp_path)


def test_all_architectures_have_the_same_packages_each_by_hash() -> None:
    names = [[each.name for each in debian.locked(one.architecture)] for one in PLATFORMS]
    assert names[0] == names[1]
    assert {"ca-certificates", "libc6", "libssl3", "python3.11-minimal"} <= {*names[0]}
    for platform in PLATFORMS:
        for each in debian.locked(platform.architecture):
            assert re.fullmatch(r"[0-9a-f]{64}", each.sha256)


def test_an_archive_has_an_index_of_all_architectures_and_compressed_layers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    images = {
        platform.architecture: oci.write(
            oci.Recipe(
                [[Entry("file", platform.architecture.encode())]],
                ["/file"],
                architecture=platform.architecture,
                is_compressed=True,
            ),
            store,
        )
        for platform in PLATFORMS
    }
    index = oci.write_index(images, store)
    content = b"".join(oci.index_archive("pergola:1", index, [*images.values()], store))
    with tarfile.open(fileobj=io.BytesIO(content)) as archived:

        def blob(digest: str) -> bytes:
            file = archived.extractfile(f"blobs/{digest.replace(':', '/')}")
            return file.read() if file else b""

        [top] = json.loads((archived.extractfile("index.json") or io.BytesIO()).read())["manifests"]
        assert top["digest"] == index.digest
        for described in json.loads(blob(top["digest"]))["manifests"]:
            architecture = described["platform"]["architecture"]
            image = json.loads(blob(described["digest"]))
            config = json.loads(blob(image["config"]["digest"]))
            [layer] = image["layers"]
            assert config["architecture"] == architecture
            assert layer["mediaType"].endswith("+gzip")
            with tarfile.open(fileobj=io.BytesIO(blob(layer["digest"]))) as packed:
                file = packed.extractfile("file")
                assert file
                assert file.read() == architecture.encode()
