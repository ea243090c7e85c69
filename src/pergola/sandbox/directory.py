"""Sandbox directories and the ownership of sandbox names.

Everything is under `${XDG_RUNTIME_DIR}/pergola-<uid>` (or the directory for temporary files), with
access for the user only. The holder of the lock on `sandbox-<name>.lock` owns the name; the kernel
releases the lock when the holder exits or crashes.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
# A Unix socket's address has at most 108 bytes, including the trailing NUL.
_LONGEST_SOCKET: Final = 107
_ATTEMPTS: Final = 5
_MOMENT: Final = 0.005


def root() -> Path:
    """Return the directory of all sandboxes of this user, creating it if missing.

    Raises:
        SandboxError: it belongs to another user, or it cannot be created.
    """
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(parent) / f"pergola-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise SandboxError(
            f"cannot create the sandbox directory {path}: {error.strerror}; "
            "set XDG_RUNTIME_DIR to a directory of yours"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise SandboxError(
            f"{path} belongs to another user; set XDG_RUNTIME_DIR to a directory of yours"
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def directory_of(name: str) -> Path:
    """Return the directory of the sandbox of this name, whether it exists or not.

    Raises:
        SandboxError: the name has other characters than lower-case letters, digits and dashes, or
            is too long.
    """
    if not _NAME.fullmatch(name):
        raise SandboxError(
            f'"{name}" cannot name a sandbox: use up to 40 lower-case letters, digits and dashes'
        )
    path = root() / f"sandbox-{name}"
    if len(os.fsencode(path / "etcd-peer.sock")) > _LONGEST_SOCKET:
        raise SandboxError(
            f"{path} is too long a path for a socket; set XDG_RUNTIME_DIR to a shorter one"
        )
    return path


def claim(name: str) -> int | None:
    """Claim the name, and return the descriptor that holds the lock; None if it is taken.

    The claim lasts until every process that inherited the descriptor has closed it.
    """
    path = _lock_path(name)
    for _ in range(_ATTEMPTS):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            # `is_claimed` in another process holds the lock for microseconds.
            time.sleep(_MOMENT)
            continue
        if _is_file(lock, path):
            return lock
        # The previous owner removed the file between our open and our lock.
        os.close(lock)
    return None


def is_claimed(name: str) -> bool:
    """Return whether a sandbox of this name is running or starting."""
    try:
        lock = os.open(_lock_path(name), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def give_up(name: str, lock: int) -> None:
    """Release the caller's claim; remove the directory before."""
    _lock_path(name).unlink(missing_ok=True)
    os.close(lock)


def names() -> Iterator[str]:
    """Yield the names with files on disk: those of running and of crashed sandboxes."""
    for path in sorted(root().glob("sandbox-*")):
        name = path.name.removeprefix("sandbox-").removesuffix(".lock")
        if path.is_dir() or not path.with_suffix("").exists():
            yield name


def make(name: str) -> Path:
    """Create an empty directory for the sandbox; the caller must hold the claim."""
    path = directory_of(name)
    remove(path)
    path.mkdir(mode=0o700)
    return path


def remove(path: Path) -> None:
    """Remove a sandbox's directory, even while dying components still write to it."""
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return


def write(path: Path, content: bytes | str) -> Path:
    """Write a file atomically, readable only by the user."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return fresh.replace(path)


def _lock_path(name: str) -> Path:
    directory = directory_of(name)
    return directory.with_name(f"{directory.name}.lock")


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
