"""Layers: tar streams that depend only on the names, modes and contents of their files."""

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
        content: bytes, or the file to read them from; None for a folder.
        mode: permissions.
        owner: the ID of both user and group.
        target: the target of a symbolic link, which has no content.
    """

    path: str
    content: bytes | Path | None = None
    mode: int = 0o644
    owner: int = 0
    target: str = ""


def folder(path: str, mode: int = 0o755, owner: int = 0) -> Entry:
    """Return an entry for a folder."""
    return Entry(path, mode=mode, owner=owner)


def program(path: str, source: Path) -> Entry:
    """Return an entry for an executable file."""
    return Entry(path, source, 0o755)


def tree(source: Path, path: str) -> Iterator[Entry]:
    """Yield a folder of this machine with its content, placed at `path` in the image.

    Owners and write permissions are not copied: everything belongs to root.
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
    """Yield the tar stream of a layer, adding the parent folders of its entries."""
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
