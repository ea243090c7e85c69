"""The store of image blobs, each named by the hash of its content."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.errors import SandboxError

_ALGORITHM: Final = "sha256"


class Blob(NamedTuple):
    """A blob: its digest `sha256:…` and its size in bytes."""

    digest: str
    size: int


class Image(NamedTuple):
    """An image in a store.

    Attributes:
        blobs: its configuration, followed by its layers.
    """

    manifest: Blob
    blobs: tuple[Blob, ...]

    @property
    def size(self) -> int:
        """The size in bytes of its layers, configuration and manifest."""
        return self.manifest.size + sum(blob.size for blob in self.blobs)


class Store:
    """A folder of blobs, with equal content stored once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, blob: Blob) -> Path:
        """Return the path of a blob's file."""
        return self._folder / blob.digest.removeprefix(f"{_ALGORITHM}:")

    def put(self, stream: Callable[[], Iterable[bytes]]) -> Blob:
        """Store the content of a stream, which is read twice if the content is new.

        Raises:
            SandboxError: the blob cannot be stored.
        """
        digest, size = hashlib.sha256(), 0
        for chunk in stream():
            digest.update(chunk)
            size += len(chunk)
        blob = Blob(f"{_ALGORITHM}:{digest.hexdigest()}", size)
        if not self.path(blob).exists():
            try:
                self._write(blob, stream())
            except OSError as error:
                raise SandboxError(self._complaint(error, size)) from error
        return blob

    def remember(self, key: str, image: Image) -> None:
        """Record the image that was built from the content with this key."""
        note = self._folder / f"{key}.json"
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps([image.manifest, image.blobs]))
        fresh.rename(note)

    def recall(self, key: str) -> Image | None:
        """Return the image recorded for a key, or None if it is not complete."""
        try:
            manifest, blobs = json.loads((self._folder / f"{key}.json").read_text())
            image = Image(Blob(*manifest), tuple(Blob(*blob) for blob in blobs))
        except (OSError, ValueError, TypeError):
            return None
        whole = all(self.path(blob).exists() for blob in (image.manifest, *image.blobs))
        return image if whole else None

    def _write(self, blob: Blob, chunks: Iterable[bytes]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(chunks)
            Path(name).rename(self.path(blob))
        except BaseException:
            Path(name).unlink()
            raise

    def _complaint(self, error: OSError, size: int) -> str:
        if error.errno == errno.ENOSPC:
            return (
                f"the disk of {self._folder} is full: {size >> 20} MB are needed for an image;"
                " make room, or set XDG_CACHE_HOME to a folder on another disk"
            )
        return f"cannot store an image in {self._folder}: {error.strerror}"
