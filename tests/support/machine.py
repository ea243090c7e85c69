"""Capture all state of this machine that a node could change or leave behind."""

import re
import subprocess
from pathlib import Path

from pergola.sandbox.node import cgroups

_SETTINGS = ("kernel/panic", "vm/overcommit_memory", "net/ipv4/ip_forward")
_FOLDERS = ("/etc", "/opt", "/run", "/var/lib", "/var/log", "/var/run")


def traces() -> list[str]:
    """Return kernel settings, system folders, interfaces, mounts and nftables tables."""
    listed = ["nft", "list", "tables"]
    return [
        *(f"{name}={Path('/proc/sys', name).read_text()}" for name in _SETTINGS),
        *(f"{path}: {sorted(p.name for p in Path(path).iterdir())}" for path in _FOLDERS),
        *re.findall(r"^\s*(\w+):", Path("/proc/net/dev").read_text(), re.MULTILINE),
        *Path("/proc/self/mountinfo").read_text().splitlines(),
        subprocess.run(listed, check=True, capture_output=True, text=True).stdout,
    ]


def cgroups_of(directory: Path) -> list[Path]:
    """Return the cgroups of the sandbox in a directory."""
    found = cgroups.hierarchies(Path("/proc/self/mountinfo").read_text())
    return [g for h in found for g in h.mount_point.glob(f"**/*{directory.name}-*")]
