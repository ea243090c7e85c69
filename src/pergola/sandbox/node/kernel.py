"""System calls for nodes that Python's standard library lacks."""

import ctypes
import os
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError

NEW_MOUNTS: Final = 0x00020000
NEW_CGROUPS: Final = 0x02000000
NEW_HOST_NAME: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_PROCESSES: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000

BIND: Final = 0x1000
RECURSIVE: Final = 0x4000
PRIVATE: Final = 0x40000
SHARED: Final = 0x100000

# Loaded before any fork: the child must not take the loader's locks.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: int) -> None:
    """Move the caller (with NEW_PROCESSES: its children) into new namespaces.

    Raises:
        SandboxError: the kernel refuses.
    """
    if _LIBC.unshare(namespaces):
        raise SandboxError(f"the kernel refuses new namespaces: {os.strerror(ctypes.get_errno())}")


def enter_network(descriptor: int) -> None:
    """Move the calling thread into a network namespace.

    Raises:
        SandboxError: the kernel refuses.
    """
    if _LIBC.setns(descriptor, NEW_NETWORK):
        raise SandboxError(
            f"the kernel refuses the network namespace: {os.strerror(ctypes.get_errno())}"
        )


def mount(
    source: str | Path, target: Path, kind: str = "", flags: int = 0, options: str = ""
) -> None:
    """Mount a file system, or change a mount.

    Raises:
        SandboxError: the kernel refuses.
    """
    texts = [os.fsencode(text) for text in (source, target)]
    if _LIBC.mount(*texts, kind.encode(), ctypes.c_ulong(flags), options.encode()):
        raise SandboxError(
            f"cannot mount {kind or source} at {target}: {os.strerror(ctypes.get_errno())}"
        )


def set_host_name(name: str) -> None:
    """Set the host name in the caller's namespace."""
    if _LIBC.sethostname(name.encode(), len(name)):
        raise SandboxError(f"cannot set the host name: {os.strerror(ctypes.get_errno())}")
