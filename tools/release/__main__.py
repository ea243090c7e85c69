"""Write a release into a folder.

    python -m tools.release dist
    python -m tools.release dist --image registry.example/pergola
    python -m tools.release dist --without-image
    python -m tools.release --lock

Wheel and source archive, image, charts, CustomResourceDefinitions, bills of materials, licences,
checksums, and the script that publishes them. The same commit gives the same bytes: all times are
that of the commit, or SOURCE_DATE_EPOCH.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pergola import __version__
from pergola.sandbox import SandboxError
from pergola.sandbox.images.store import Store
from tools.release import debian, image
from tools.release.charts import definitions, pack_all
from tools.release.commands import ROOT, uv
from tools.release.images import image_list
from tools.release.materials import licence_list, materials

_STEM: Final = f"pergola-{__version__}"
_SCRIPT: Final = Path(__file__).with_name("publish.sh")


def release(
    folder: Path, epoch: int, repository: str = "", *, with_image: bool = True
) -> Iterator[Path]:
    """Write all files of a release, and yield each.

    Args:
        folder: where to; created if missing.
        epoch: the time of everything, in seconds since 1970.
        repository: where the image will be, for the values of the charts; empty if it is unknown.
        with_image: whether to build the image, whose parts are downloaded.

    Raises:
        SystemExit: a part cannot be built.
        SandboxError: Helm, which the image has, cannot be built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for path in _parts(folder, epoch, repository, with_image=with_image):
        files.append(path)
        yield path
    sums = (f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files)
    yield _written(folder / "SHA256SUMS", "".join(sums))


def _parts(folder: Path, epoch: int, repository: str, *, with_image: bool) -> Iterator[Path]:
    yield from packages(folder, epoch)
    bill = materials(epoch)
    digest = ""
    if with_image:
        path = folder / f"{_STEM}-image.tar"
        digest = write_image(path, folder / f"{_STEM}-py3-none-any.whl", epoch)
        yield path
        yield _written(folder / f"{_STEM}-image.cdx.json", _dump(image.materials(bill, epoch)))
    yield from pack_all(folder, epoch, repository, digest)
    yield from definitions(folder)
    yield _written(folder / f"{_STEM}.cdx.json", _dump(bill))
    yield _written(folder / f"{_STEM}-licences.txt", licence_list(bill))
    yield _written(folder / "images.txt", image_list())
    script = folder / "publish.sh"
    shutil.copyfile(_SCRIPT, script)
    script.chmod(0o755)
    yield script


def packages(folder: Path, epoch: int) -> Iterator[Path]:
    """Build the wheel and the source archive, and yield both."""
    uv(
        *("build", "--wheel", "--sdist", "--no-build-isolation", "--python", sys.executable),
        *("--out-dir", str(folder)),
        epoch=epoch,
    )
    yield folder / f"{_STEM}-py3-none-any.whl"
    yield folder / f"{_STEM}.tar.gz"


def write_image(path: Path, wheel: Path, epoch: int) -> str:
    """Write the archive of the image, and return the digest of the image."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name))
        built = image.build_image(wheel, epoch, store)
        with path.open("wb") as file:
            file.writelines(image.archive(built, store))
    return built.manifest.digest


def time_of_commit() -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the commit that is checked out."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    line = ["git", "log", "-1", "--format=%ct"]
    answer = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit("error: this is not a checkout of git; set SOURCE_DATE_EPOCH")
    return int(answer.stdout)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _dump(content: dict[str, Any]) -> str:
    return f"{json.dumps(content, indent=2)}\n"


def _lock() -> None:
    packages = (
        package
        for platform in image.PLATFORMS
        for package in debian.resolved(platform.architecture)
    )
    debian.LOCK.write_text("".join(f"{' '.join(package)}\n" for package in packages))


def main() -> None:
    """Write a release, or the lock of the image's Debian packages."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    parser.add_argument("--image", default="", help="where the image will be, without its tag")
    parser.add_argument("--without-image", action="store_true", help="download nothing")
    parser.add_argument("--lock", action="store_true", help="pin the current Debian packages")
    given = parser.parse_args()
    if given.lock:
        _lock()
        return
    folder = given.folder.resolve()
    try:
        for path in release(
            folder, time_of_commit(), given.image, with_image=not given.without_image
        ):
            print(path, flush=True)
    except SandboxError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
