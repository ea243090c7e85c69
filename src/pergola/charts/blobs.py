"""Content on disk, named by its digest, so that nothing is pulled twice."""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pergola.charts.limits import MIB

CACHE: Final = "PERGOLA_CHART_CACHE"
"""The environment variable with the directory, which defaults to one for temporary files."""
DIRECTORY: Final = Path(tempfile.gettempdir()) / "pergola-charts"
BYTES: Final = 256 * MIB
_PREFIX: Final = "sha256:"
_PARTIAL: Final = "partial-"
_OWN: Final = re.compile(rf"[0-9a-f]{{64}}|{_PARTIAL}\w+")
_ROOT: Final = 0


def digest_of(content: bytes) -> str:
    """Return the digest of content in the format of registries."""
    return _PREFIX + hashlib.sha256(content).hexdigest()


class Blobs:
    """A directory of content by digest, bounded in size: what was used least recently goes first.

    It is a cache: a full or read-only disk makes it forget content, but never fails a pull. All
    methods do blocking I/O; in an event loop, call them through `asyncio.to_thread`.

    Args:
        directory: Created at the first write, for this user only. It is not used if it is a link,
            or belongs to another user than this one and root: anyone may write to the directory for
            temporary files.
        limit: The total number of bytes.
    """

    def __init__(self, directory: Path = DIRECTORY, limit: int = BYTES) -> None:
        self._directory = directory
        self._limit = limit

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Blobs":
        """Return the directory named in an environment."""
        return cls(Path(environment.get(CACHE) or DIRECTORY))

    def read(self, digest: str) -> bytes | None:
        """Return the content, or None if it is missing or does not match its digest."""
        path = self._path(digest)
        try:
            if not self._is_safe():
                return None
            content = path.read_bytes()
        except OSError:
            return None
        if digest_of(content) != digest:
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)  # mark it as used just now
        return content

    def write(self, content: bytes) -> None:
        """Store content, and evict what no longer fits."""
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_safe():
                return
            with tempfile.NamedTemporaryFile(
                dir=self._directory, prefix=_PARTIAL, delete=False
            ) as file:
                file.write(content)
            Path(file.name).replace(self._path(digest_of(content)))
            self._shrink()

    def _shrink(self) -> None:
        found = sorted(
            ((path.stat().st_mtime_ns, path.stat().st_size, path) for path in self._files()),
            reverse=True,
        )
        total = 0
        for _, size, path in found:
            total += size
            if total > self._limit:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Return the files that this class writes; others may keep theirs beside them."""
        return [path for path in self._directory.iterdir() if _OWN.fullmatch(path.name)]

    def _is_safe(self) -> bool:
        found = self._directory.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid in (os.getuid(), _ROOT)

    def _path(self, digest: str) -> Path:
        return self._directory / digest.removeprefix(_PREFIX)
