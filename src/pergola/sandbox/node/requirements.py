"""Requirements for running a node, checked before anything starts."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import RUNC
from pergola.sandbox.node.cgroups import hierarchies

# Programs that the node's programs run, each with its Debian package.
_PROGRAMS: Final = {
    "conntrack": "conntrack",
    "ip": "iproute2",
    "ipset": "ipset",
    "iptables-save": "iptables",
    "mount": "mount",
    "nft": "nftables",
}
# The folders that sudo also searches; an unprivileged user's PATH often lacks them.
_SYSTEM_FOLDERS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_FILE_SYSTEMS: Final = ("overlay", "tmpfs")
_NAMESPACES: Final = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
_CONTROLLERS: Final = ("cpu", "cpuset", "memory", "pids")


def check() -> None:
    """Check that this machine can run a node.

    Raises:
        SandboxError: a requirement is not met; the message names all of them.
    """
    missing = list(_missing())
    if missing:
        raise SandboxError(f"a node cannot run on this machine: {'; '.join(missing)}")


def _missing() -> Iterator[str]:
    if sys.platform != "linux":
        yield "it needs Linux"
        return
    if os.geteuid() != 0:
        yield "it needs root (sudo)"
    path = _search_path()
    programs = {p: name for p, name in _PROGRAMS.items() if shutil.which(p, path=path) is None}
    if programs:
        packages = " ".join(sorted(set(programs.values())))
        yield f"{', '.join(programs)} not found (apt-get install {packages})"
    yield from _missing_of_kernel()
    yield from _missing_to_build()


def _search_path() -> str:
    """Return the PATH of this user, or the one after sudo."""
    folders = [os.environ.get("PATH", os.defpath)]
    return os.pathsep.join(folders if os.geteuid() == 0 else [*folders, *_SYSTEM_FOLDERS])


def _missing_of_kernel() -> Iterator[str]:
    namespaces = [n for n in _NAMESPACES if not Path(f"/proc/self/ns/{n}").exists()]
    file_systems = [name for name in _FILE_SYSTEMS if name not in _file_systems()]
    controllers = [name for name in _CONTROLLERS if name not in _controllers()]
    for names, noun in (
        (namespaces, "namespaces"),
        (file_systems, "file systems"),
        (controllers, "cgroup controllers"),
    ):
        if names:
            yield f"the kernel lacks {noun}: {', '.join(names)}"


def _file_systems() -> set[str]:
    """Return the file systems of the kernel and its modules, which a mount loads."""
    known = set(Path("/proc/filesystems").read_text().split())
    modules = Path("/lib/modules", os.uname().release, "modules.dep")
    if modules.exists():
        known |= set(re.findall(r"/(\w+)\.ko", modules.read_text()))
    return known


def _controllers() -> set[str]:
    found = hierarchies(Path("/proc/self/mountinfo").read_text())
    if found and not found[0].options:
        content = found[0].mount_point / "cgroup.controllers"
        return set(content.read_text().split()) if content.exists() else set()
    return {name for hierarchy in found for name in hierarchy.controllers}


def _missing_to_build() -> Iterator[str]:
    """Yield missing requirements for building runc, which links libseccomp."""
    if binaries.present((RUNC,)):
        return
    packages = ["pkg-config"] if shutil.which("pkg-config") is None else []
    if packages or not _has_libseccomp():
        packages.append("libseccomp-dev")
        yield f"runc cannot be built (apt-get install {' '.join(packages)})"


def _has_libseccomp() -> bool:
    line = ["pkg-config", "--exists", "libseccomp"]
    return subprocess.run(line, check=False, capture_output=True).returncode == 0
