"""Pergola's image for a registry, for two architectures, from pinned parts.

Debian's interpreter and libraries, Helm, the packages that `uv.lock` names, and the wheel of the
release; each is a layer. Nothing of the machine that builds it gets into the image.
"""

import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from pergola import __version__
from pergola.sandbox import binaries
from pergola.sandbox.build import build
from pergola.sandbox.images import oci
from pergola.sandbox.images.compiled import compiled
from pergola.sandbox.images.layers import Entry, program
from pergola.sandbox.images.offer import BASE
from pergola.sandbox.images.store import Blob, Image, Store
from pergola.sandbox.on_demand import CHARTS, HELM
from tools.release import debian
from tools.release.commands import uv

PYTHON: Final = (3, 11)
"""The version of the interpreter in the image, which must compile its modules."""
_PACKAGES: Final = "usr/local/lib/python3.11/dist-packages"
COMMAND: Final = b"""\
#!/usr/bin/python3.11
import sys
from pergola.cli import main
sys.exit(main())
"""
_OF_INSTALLERS: Final = frozenset(("INSTALLER", "RECORD", "REQUESTED", "direct_url.json"))


class Platform(NamedTuple):
    """A platform of the image.

    Attributes:
        architecture: as Debian, Go and OCI name it.
        wheels: the platform of binary packages, as uv names it.
    """

    architecture: str
    wheels: str


PLATFORMS: Final = (
    Platform("amd64", "x86_64-manylinux_2_28"),
    Platform("arm64", "aarch64-manylinux_2_28"),
)


class Built(NamedTuple):
    """An image of several platforms in a store.

    Attributes:
        manifest: the index of its images.
        images: by architecture.
    """

    manifest: Blob
    images: Mapping[str, Image]


def build_image(wheel: Path, epoch: int, store: Store) -> Built:
    """Build the image of all platforms.

    Args:
        wheel: of the release.
        epoch: the time that the image states, in seconds since 1970.

    Raises:
        SystemExit: a part cannot be had, or this interpreter has another version.
        SandboxError: Helm cannot be built.
    """
    if sys.version_info[:2] != PYTHON:
        raise SystemExit(
            "error: the image's modules are compiled by Python {}.{}: run `make release "
            "PYTHON=python3.11`".format(*PYTHON)
        )
    images = {
        platform.architecture: oci.write(_recipe(platform, wheel, epoch), store)
        for platform in PLATFORMS
    }
    return Built(oci.write_index(images, store), images)


def archive(built: Built, store: Store) -> Iterator[bytes]:
    """Yield an OCI archive, which is the layout of the image in a tar file."""
    name = f"pergola:{__version__}"
    return oci.index_archive(name, built.manifest, built.images.values(), store)


def materials(bill: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    """Return the bill of materials of the image as CycloneDX.

    Args:
        bill: of the package; it names the components of all platforms.
    """
    packages = {each for platform in PLATFORMS for each in debian.locked(platform.architecture)}
    components = [
        {
            "type": "library",
            "bom-ref": package.purl,
            "name": package.name,
            "version": package.version,
            "purl": package.purl,
        }
        for package in sorted(packages)
    ]
    helm = f"pkg:golang/{CHARTS.versioned}@{CHARTS.version}"
    components.append(
        {
            "type": "application",
            "bom-ref": helm,
            "name": HELM,
            "version": CHARTS.version,
            "purl": helm,
        }
    )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": {"type": "container", "name": "pergola", "version": __version__},
        },
        "components": [*components, *bill["components"]],
    }


def _recipe(platform: Platform, wheel: Path, epoch: int) -> oci.Recipe:
    cache = binaries.cache().parent / "release"
    system = debian.entries(debian.locked(platform.architecture), cache / "debian")
    helm = program(f"usr/local/bin/{HELM}", _helm(platform, cache))
    package = [Entry("usr/local/bin/pergola", COMMAND, 0o755), *compiled(_of_wheel(wheel))]
    return oci.Recipe(
        [
            [*BASE, *compiled(system)],
            [helm],
            [*compiled(_libraries(platform))],
            package,
        ],
        ["/usr/local/bin/pergola"],
        variables={"PYTHONUNBUFFERED": "1"},
        labels={
            "org.opencontainers.image.title": "pergola",
            "org.opencontainers.image.version": __version__,
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.created": datetime.fromtimestamp(epoch, UTC).isoformat(),
        },
        architecture=platform.architecture,
        is_compressed=True,
    )


def _helm(platform: Platform, cache: Path) -> Path:
    environ = {**os.environ, "GOOS": "linux", "GOARCH": platform.architecture}
    folder = cache / f"{CHARTS.key}-{platform.architecture}"
    return build(CHARTS, (HELM,), folder, _silent, environ)[HELM]


def _silent(line: str) -> None:
    del line


def _libraries(platform: Platform) -> Iterator[Entry]:
    """Yield the files of the packages that Pergola requires, as locked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        requirements = folder / "requirements.txt"
        uv(
            *("export", "--frozen", "--no-dev", "--extra", "aws", "--extra", "otel"),
            *("--no-emit-project", "--quiet", "--output-file", str(requirements)),
        )
        target = folder / "packages"
        uv(
            *("pip", "install", "--target", str(target), "--no-deps", "--require-hashes"),
            *("--python", sys.executable, "--python-platform", platform.wheels),
            *("--python-version", "{}.{}".format(*PYTHON), "--only-binary", ":all:", "--quiet"),
            *("--requirement", str(requirements)),
        )
        for file in sorted(target.rglob("*")):
            path = file.relative_to(target)
            is_kept = path.parts[0] != "bin" and file.name not in _OF_INSTALLERS
            if file.is_file() and is_kept:
                yield Entry(f"{_PACKAGES}/{path}", file.read_bytes())


def _of_wheel(wheel: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(wheel) as archived:
        for name in archived.namelist():
            if not name.endswith("/") and Path(name).name not in _OF_INSTALLERS:
                yield Entry(f"{_PACKAGES}/{name}", archived.read(name))
