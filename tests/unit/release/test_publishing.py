"""`publish.sh`, which a release contains, with a real registry, crane and Helm."""

import asyncio
import hashlib
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola import __version__
from pergola.charts import Access, ChartReference, Puller
from pergola.sandbox import binaries
from pergola.sandbox.images import oci
from pergola.sandbox.images.layers import Entry
from pergola.sandbox.images.store import Store
from pergola.sandbox.on_demand import CRANE, HELM
from pergola.sandbox.registry import Registry, registry
from tools.release.charts import pack_all

pytestmark = pytest.mark.timeout(300)

SCRIPT: Final = Path(__file__).parents[3] / "tools" / "release" / "publish.sh"
COSIGN: Final = '#!/bin/sh\necho "$@" >>"$0.log"\n'


class Published(NamedTuple):
    """The exit code of the script, what it printed, and its last line on standard error."""

    code: int
    lines: list[str]
    error: str


def release(folder: Path) -> str:
    """Write what is published of a release, with a small image; return the image's digest."""
    store = Store(folder / "store")
    recipe = oci.Recipe([[Entry("file", b"x")]], ["/file"], is_compressed=True)
    images = {"amd64": oci.write(recipe, store)}
    index = oci.write_index(images, store)
    archive = folder / f"pergola-{__version__}-image.tar"
    archive.write_bytes(b"".join(oci.index_archive("pergola:1", index, [*images.values()], store)))
    shutil.rmtree(folder / "store")
    files = [archive, *pack_all(folder, 0, "registry.example/pergola", index.digest)]
    sums = (f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files)
    (folder / "SHA256SUMS").write_text("".join(sums))
    shutil.copy(SCRIPT, folder)
    (folder / SCRIPT.name).chmod(0o755)
    return index.digest


def programs(folder: Path, *names: str) -> dict[str, str]:
    """Return an environment with these programs besides those of the system; cosign only records.

    Args:
        folder: an empty folder for links to them.
    """
    folder.mkdir()
    for name, path in binaries.find(tuple({CRANE, HELM} & {*names})).items():
        (folder / name).symlink_to(path)
    if "cosign" in names:
        (folder / "cosign").write_text(COSIGN)
        (folder / "cosign").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}


async def publish(folder: Path, environ: Mapping[str, str], *arguments: str) -> Published:
    """Run the script of a release."""
    script = str(folder / SCRIPT.name)
    process = await asyncio.create_subprocess_exec(
        script, *arguments, stdout=PIPE, stderr=PIPE, env={**environ}
    )
    output, errors = await process.communicate()
    said = ["", *errors.decode().splitlines()]
    return Published(process.returncode or 0, output.decode().splitlines(), said[-1])


def trusting(environ: Mapping[str, str], found: Registry) -> dict[str, str]:
    """Return the environment in which programs trust the registry's authority."""
    path = found.directory / "ca.crt"
    path.write_text(found.ca_bundle)
    return {**environ, "SSL_CERT_FILE": str(path)}


async def test_image_and_charts_are_pushed_and_signed_by_digest_as_often_as_one_likes(
    tmp_path: Path,
) -> None:
    for name in ("release", "registry"):
        (tmp_path / name).mkdir()
    digest = release(tmp_path / "release")
    environ = programs(tmp_path / "bin", CRANE, HELM, "cosign")
    async with registry(tmp_path / "registry", tls=True) as found:
        environ = trusting(environ, found)
        to = f"{found.host}/team"
        first = await publish(tmp_path / "release", environ, f"{to}/")
        again = await publish(tmp_path / "release", environ, to)
        assert (first.code, again.code) == (0, 0), (first.error, again.error)
        assert again.lines == first.lines
        assert first.lines[0] == f"{to}/pergola:{__version__}@{digest}"
        puller = Puller()
        names = set()
        for line in first.lines[1:]:
            reference = ChartReference.parse(line)
            chart = await puller.pull(reference, Access(ca_bundle=found.ca_bundle))
            assert line.startswith(f"{to}/charts/{chart.name}:{__version__}@sha256:")
            names.add(chart.name)
    signed = (tmp_path / "bin" / "cosign.log").read_text().splitlines()
    blob = "sign-blob --yes --bundle SHA256SUMS.bundle SHA256SUMS"
    wanted = [f"sign --yes {line.replace(f':{__version__}@', '@')}" for line in first.lines]
    assert signed == [*wanted, blob] * 2
    assert {"operator", "resource-manager", "provider-aws"} <= names


async def test_nothing_is_signed_without_cosign_if_that_is_asked_for(tmp_path: Path) -> None:
    for name in ("release", "registry"):
        (tmp_path / name).mkdir()
    release(tmp_path / "release")
    environ = programs(tmp_path / "bin", CRANE, HELM)
    refused = await publish(tmp_path / "release", environ, "registry.example")
    assert refused.code == 1
    assert refused.error.endswith("/cosign, or give --no-sign")
    async with registry(tmp_path / "registry", tls=True) as found:
        environ = trusting(environ, found)
        published = await publish(tmp_path / "release", environ, found.host, "--no-sign")
    assert published.code == 0, published.error


async def test_a_release_that_was_changed_is_not_published(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    release(folder)
    environ = programs(tmp_path / "bin", CRANE, HELM)
    with next(folder.glob("operator-*.tgz")).open("ab") as chart:
        chart.write(b"x")
    answer = await publish(folder, environ, "registry.example", "--no-sign")
    assert answer.code == 1
    assert answer.error == "error: files of the release were changed"


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    release(folder)
    without = programs(tmp_path / "bin", HELM)
    nowhere, without_crane = (
        await publish(folder, without),
        await publish(folder, without, "registry.example"),
    )
    assert nowhere.error == "error: name the registry, such as registry.example/team"
    assert without_crane.error == (
        "error: crane is not installed: https://github.com/google/go-containerregistry"
    )
