"""The Debian packages below Pergola's image, pinned by hash.

`debian.lock` has a line for each: architecture, name, version, SHA-256, and path in the archive.
Write it with `python -m tools.release --lock`, which asks the archive for the current versions.
"""

import hashlib
import io
import lzma
import os
import re
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.images.layers import Entry

LOCK: Final = Path(__file__).with_name("debian.lock")
ROOTS: Final = ("ca-certificates", "libpython3.11-stdlib", "python3.11-minimal", "tzdata")
_MIRROR: Final = "https://deb.debian.org"
_INDICES: Final = (
    "debian/dists/bookworm/main",
    "debian-security/dists/bookworm-security/main",
)
# What these packages need to be installed by Debian's tools, and for modules of Python that nothing
# imports: readline, curses, dbm, nis.
_NOT_NEEDED: Final = frozenset(
    {
        *("debconf", "debconf-2.0", "dpkg", "openssl", "readline-common"),
        *("libdb5.3", "libncursesw6", "libnsl2", "libreadline8", "libtinfo6", "libtirpc3"),
    }
)
_LEFT_OUT: Final = re.compile(
    r"usr/share/(man|locale|lintian|doc-base|info|binfmts|applications|pixmaps)/|"
    r"usr/share/doc/[^/]+/(?!copyright$)|"
    r"usr/lib/python3\.11/(ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo)/|"
    r".*/__pycache__/"
)
_MERGED: Final = ("bin", "lib", "lib64", "sbin")
_AUTHORITIES: Final = "usr/share/ca-certificates/mozilla/"
_BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_MAGIC: Final = b"!<arch>\n"
_HEADER: Final = 60


class Package(NamedTuple):
    """A binary package.

    Attributes:
        sha256: of the file.
        path: of the file, on the mirror.
    """

    architecture: str
    name: str
    version: str
    sha256: str
    path: str

    @property
    def purl(self) -> str:
        """The package URL of a bill of materials."""
        return f"pkg:deb/debian/{self.name}@{self.version}?arch={self.architecture}"


def locked(architecture: str) -> list[Package]:
    """Return the packages of an architecture, `amd64` or `arm64`, as locked."""
    lines = (Package(*line.split()) for line in LOCK.read_text().splitlines())
    return [package for package in lines if package.architecture == architecture]


def entries(packages: Iterable[Package], cache: Path) -> list[Entry]:
    """Return the files of packages, downloaded into a folder unless they are there.

    Raises:
        SystemExit: a package cannot be had, or has another hash.
    """
    found = {
        entry.path: entry for package in packages for entry in _files(download(package, cache))
    }
    bundle = b"".join(
        entry.content
        for path, entry in sorted(found.items())
        if path.startswith(_AUTHORITIES) and isinstance(entry.content, bytes)
    )
    kept = [entry for path, entry in found.items() if not path.startswith(_AUTHORITIES)]
    return [
        *kept,
        *(Entry(name, target=f"usr/{name}") for name in _MERGED),
        Entry(_BUNDLE, bundle),
        Entry("usr/lib/ssl/cert.pem", target=f"/{_BUNDLE}"),
    ]


def download(package: Package, cache: Path) -> bytes:
    """Return the content of a package.

    Raises:
        SystemExit: it cannot be had, or has another hash.
    """
    file = cache / package.sha256
    content = file.read_bytes() if file.is_file() else _fetched(package.path)
    if hashlib.sha256(content).hexdigest() != package.sha256:
        raise SystemExit(f"error: {package.path} does not have the hash in {LOCK.name}")
    cache.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return content


def _fetched(path: str) -> bytes:
    url = f"{os.environ.get('DEBIAN_MIRROR', _MIRROR)}/{path}"
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 # https, or the user's
            content: bytes = answer.read()
    except OSError as error:
        raise SystemExit(
            f"error: cannot download {url}: {error}; if it was replaced by a newer version, update "
            f"{LOCK.name} with `python -m tools.release --lock`"
        ) from error
    return content


def _files(package: bytes) -> Iterator[Entry]:
    """Yield the files and links of a package, below `usr` where Debian has merged folders."""
    with tarfile.open(fileobj=io.BytesIO(_data(package)), mode="r:*") as data:
        for member in data:
            path = _merged(member.name.removeprefix("./"))
            if _LEFT_OUT.match(path):
                continue
            if member.issym():
                yield Entry(path, target=member.linkname)
            elif file := data.extractfile(member):
                yield Entry(path, file.read(), 0o755 if member.mode & 0o100 else 0o644)


def _merged(path: str) -> str:
    return f"usr/{path}" if path.partition("/")[0] in _MERGED else path


def _data(package: bytes) -> bytes:
    """Return the member of a package, an archive of `ar`, that has its files."""
    if not package.startswith(_MAGIC):
        raise SystemExit("error: a file of the Debian archive is not a package")
    position = len(_MAGIC)
    while position < len(package):
        header = package[position : position + _HEADER]
        name, size = header[:16].decode().strip(), int(header[48:58])
        position += _HEADER
        if name.startswith("data.tar"):
            return package[position : position + size]
        position += size + size % 2
    raise SystemExit("error: a package of the Debian archive has no files")


def resolved(architecture: str) -> list[Package]:
    """Return the current versions of the packages that the image needs, from the archive.

    It compares versions with `dpkg`.
    """
    known: dict[str, dict[str, str]] = {}
    for index in _INDICES:
        packed = _fetched(f"{index}/binary-{architecture}/Packages.xz")
        archive = index.partition("/")[0]
        for fields in _paragraphs(lzma.decompress(packed).decode()):
            other = known.get(fields["Package"])
            if other is None or _is_newer(fields["Version"], other["Version"]):
                known[fields["Package"]] = {**fields, "Archive": archive}
    found: dict[str, Package] = {}
    waiting = [*ROOTS]
    while waiting:
        name = waiting.pop()
        if name in found or name in _NOT_NEEDED or name not in known:
            continue  # a virtual package, or not needed
        fields = known[name]
        path = f"{fields['Archive']}/{fields['Filename']}"
        found[name] = Package(architecture, name, fields["Version"], fields["SHA256"], path)
        required = ",".join(fields.get(each, "") for each in ("Depends", "Pre-Depends"))
        waiting += [
            re.split(r"[\s(|:]", each.strip(), maxsplit=1)[0]
            for each in required.split(",")
            if each.strip()
        ]
    return [found[name] for name in sorted(found)]


def _is_newer(version: str, other: str) -> bool:
    line = ["dpkg", "--compare-versions", version, "gt", other]
    return subprocess.run(line, check=False).returncode == 0


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    for paragraph in text.split("\n\n"):
        pairs = (line.partition(": ") for line in paragraph.splitlines() if line[:1].strip())
        fields = {name: value for name, _, value in pairs}
        if "Package" in fields:
            yield fields
