"""The inside of a node's namespaces: file systems, kernel settings, network."""

import os
import subprocess
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import cgroups, kernel
from pergola.sandbox.node.forwarder import MACHINE
from pergola.sandbox.node.kernel import BIND, PRIVATE, RECURSIVE, SHARED, mount
from pergola.sandbox.plan import NodePlan

# Programs of a node write to these folders; an overlay redirects writes to the sandbox's directory.
_COVERED: Final = ("etc", "opt", "var")
# The kubelet requires these values and would set them machine-wide. Files with these values are
# mounted over the settings, so that it finds nothing to change.
_SETTINGS: Final = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
_SERVICES: Final = "services"
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")


def enter(directory: Path, plan: NodePlan) -> None:
    """Move the calling process, the first of its PID namespace, into new namespaces.

    Raises:
        SandboxError: the kernel refuses a namespace, a mount or a setting.
    """
    cgroups.enter(plan["cgroups"])
    kernel.unshare(
        kernel.NEW_MOUNTS
        | kernel.NEW_NETWORK
        | kernel.NEW_HOST_NAME
        | kernel.NEW_IPC
        | kernel.NEW_CGROUPS
    )
    os.umask(0o022)  # containers run as any user and read files written by the kubelet
    mount("none", Path("/"), flags=RECURSIVE | PRIVATE)
    _mount_kernel()
    _mount_files(directory)
    _pin_settings(directory)
    mount("none", Path("/"), flags=RECURSIVE | SHARED)  # volumes may require mount propagation
    kernel.set_host_name(plan["name"])
    _connect(plan)
    os.environ["PATH"] = f"{directory / 'bin'}:{os.environ.get('PATH', os.defpath)}"


def _mount_kernel() -> None:
    mount("proc", Path("/proc"), "proc")
    mount("sysfs", Path("/sys"), "sysfs")
    cgroups.mount_inside()


def _mount_files(directory: Path) -> None:
    """Overlay the folders that programs write to, keeping the sandbox's directory visible."""
    kept = os.open(directory, os.O_PATH)
    for name in _COVERED:
        upper, work = (directory / "machine" / f"{name}{suffix}" for suffix in ("", ".work"))
        for folder in (upper, work):
            folder.mkdir(parents=True)
        lower = Path("/", name)
        if lower.is_dir():
            layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
            mount("overlay", lower, "overlay", options=layers)
    mount("tmpfs", Path("/run"), "tmpfs", options="mode=755")
    directory.mkdir(parents=True, exist_ok=True)
    mount(f"/proc/self/fd/{kept}", directory, flags=BIND)
    os.close(kept)
    os.chdir(directory)


def _pin_settings(directory: Path) -> None:
    for name, value in _SETTINGS.items():
        setting = Path("/proc/sys", name)
        if setting.exists():
            pinned = directory / "machine" / name.replace("/", ".")
            pinned.write_text(f"{value}\n")
            mount(pinned, setting, flags=BIND)


def _connect(plan: NodePlan) -> None:
    """Set the addresses of node and machine, and a route to Services; no other route exists."""
    _ip("link", "set", "lo", "up")
    for address in (plan["address"], MACHINE):
        _ip("address", "add", f"{address}/32", "dev", "lo")
    # A connection to a Service needs a route before kube-proxy's rules can redirect it. A route by
    # `lo` does not work: the kernel sends no errors there, and the rules need them to refuse.
    _ip("link", "add", _SERVICES, "type", "veth", "peer", "name", f"{_SERVICES}1")
    for interface in (_SERVICES, f"{_SERVICES}1"):
        _ip("link", "set", interface, "up")
    _ip("route", "add", plan["services"], "dev", _SERVICES, "src", plan["address"])
    # The kernel answers pods that look for their gateway only if it has a route to it.
    _ip("route", "add", plan["gateway"], "dev", "lo")
    _FORWARDING.write_text("1")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SandboxError(f"ip {' '.join(words)}: {done.stderr.strip()}")
