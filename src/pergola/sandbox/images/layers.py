"""Layers: files as a tar stream that depends on nothing but their names, modes and contents."""

import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

_CHUNK: Final = 1 << 20
_BLOCK: Final = tarfile.BLOCKSIZE


@dataclass(frozen=True)
class Entry:
    """A file, folder or symbolic link of a layer.

    Attributes:
        path: in the image, without the leading slash.
        content: bytes, or the file that has them; None: a folder.
        mode: permissions.
        owner: user and group, by the same number.
        target: what a symbolic link points to; it has no content.
    """

    path: str
    content: bytes | Path | None = None
    mode: int = 0o644
    owner: int = 0
    target: str = ""


def folder(path: str, mode: int = 0o755, owner: int = 0) -> Entry:
    """Return a folder."""
    return Entry(path, mode=mode, owner=owner)


def program(path: str, source: Path) -> Entry:
    """Return a file that can be run."""
    return Entry(path, source, 0o755)


def tree(source: Path, path: str) -> Iterator[Entry]:
    """Yield a folder of this machine with all that is in it, as `path` of the image.

    Owners and write permissions are not taken over: everything belongs to root.
    """
    yield folder(path)
    for file in sorted(source.rglob("*")):
        name = f"{path}/{file.relative_to(source)}"
        if file.is_symlink():
            yield Entry(name, target=str(file.readlink()))
        elif file.is_dir():
            yield folder(name)
        elif file.is_file():
            yield Entry(name, file, 0o755 if file.stat().st_mode & 0o100 else 0o644)


def pack(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield the tar stream of a layer; folders above its entries are added."""
    for entry in _with_parents(entries):
        header = tarfile.TarInfo(entry.path)
        header.mode, header.uid, header.gid = entry.mode, entry.owner, entry.owner
        if entry.target:
            header.type, header.linkname = tarfile.SYMTYPE, entry.target
        elif entry.content is None:
            header.type = tarfile.DIRTYPE
        else:
            header.size = _size(entry.content)
        yield header.tobuf(tarfile.PAX_FORMAT)
        if entry.content is not None:
            yield from _padded(entry.content, header.size)
    yield bytes(2 * _BLOCK)


def _with_parents(entries: Iterable[Entry]) -> list[Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        found[entry.path] = entry
    for path in list(found):
        for parent in PurePosixPath(path).parents:
            if str(parent) != ".":
                found.setdefault(str(parent), folder(str(parent)))
    return [found[path] for path in sorted(found, key=lambda path: path.split("/"))]


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _padded(content: bytes | Path, size: int) -> Iterator[bytes]:
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        left = size
        while chunk := file.read(min(left, _CHUNK)):
            left -= len(chunk)
            yield chunk
    if left:
        raise OSError(f"{content!r} changed while it was read")
    yield bytes(-size % _BLOCK)
