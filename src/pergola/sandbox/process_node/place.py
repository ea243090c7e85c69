"""The place of a pod's process on this machine: its loopback address, ports and files."""

import hashlib
import random
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError

# Each process gets an address of its own, so that all can keep their ports.
_ADDRESSES: Final = range(80, 120)
_ATTEMPTS: Final = 50
# Below the ports that the system assigns itself.
_OTHER_PORTS: Final = range(12_000, 30_000)
_FIRST_UNPRIVILEGED: Final = 1024
_OFFSET: Final = 10_000
# Beside the range of kwok's pods. The addresses only mean something to the tunnel.
_PODS: Final = "10.65"


@dataclass(frozen=True)
class Place:
    """The place of one process.

    Attributes:
        directory: of its pod.
        address: an address of the loopback network that nothing else listens on; that of the pod.
        mounts: the folders of the container's mounts, by their paths in the container.
        ports: the ports of the pod, with their numbers here.
        source: chooses numbers for ports that are not among them.
    """

    directory: Path
    address: str
    mounts: Mapping[str, Path] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    source: random.Random = field(default_factory=random.SystemRandom)

    def port(self, port: int) -> int:
        """Return the port on which the process serves a container's port; 0 stays any port."""
        return self.ports.get(port, _unprivileged(port))

    def claim(self, port: int) -> int:
        """Return the same for a process that will serve it; pods need not list their ports.

        Raises:
            SandboxError: there are not enough ports.
        """
        if port and port not in self.ports and port not in self.ports.values():
            self.ports[port] = _local_port(self.address, port, self.ports.values(), self.source)
        return self.port(port)

    @property
    def access(self) -> Path:
        """The kubeconfig with the pod's token, for the cluster in which it runs."""
        return self.directory / "in-cluster.kubeconfig"

    def file(self, path: str) -> Path:
        """Return where a file of the container is on this machine, if it is below a mount."""
        inner = (each for each in self.mounts if f"{path}/".startswith(f"{each}/"))
        mount = max(inner, key=len)
        return self.mounts[mount] / path.removeprefix(mount).lstrip("/")

    def localised(self, text: str) -> str:
        """Return text in which all paths below mounts are those of this machine."""
        if not self.mounts:
            return text
        longest_first = sorted(self.mounts, key=len, reverse=True)
        paths = "|".join(re.escape(path) for path in longest_first)
        # Whole components only: /srv/ca is not part of /srv/ca-client.
        pattern = rf"(?:(?<![\w./-])|(?<=unix://))({paths})(?![\w.-])"
        return re.sub(pattern, lambda match: str(self.mounts[match[1]]), text)


def free_place(ports: Iterable[int], source: random.Random) -> tuple[str, dict[int, int]]:
    """Return a loopback address, and the numbers of a container's ports there.

    Users may not bind low ports, and a server that listens on all addresses of the machine occupies
    a port on each of them.

    Raises:
        SandboxError: there are not enough ports.
    """
    desired = {port: _unprivileged(port) for port in ports}
    for _ in range(_ATTEMPTS):
        parts = (127, source.choice(_ADDRESSES), source.randrange(256), source.randrange(1, 255))
        address = ".".join(map(str, parts))
        if all(_is_free(address, port) for port in desired.values()):
            break
    local: dict[int, int] = {}
    for port in desired:
        taken = {number for other, number in desired.items() if other != port} | {*local.values()}
        local[port] = _local_port(address, port, taken, source)
    return address, local


def _local_port(address: str, port: int, taken: Collection[int], source: random.Random) -> int:
    preferred = _unprivileged(port)
    if preferred not in taken and _is_free(address, preferred):
        return preferred
    for _ in range(_ATTEMPTS):
        port = source.choice(_OTHER_PORTS)
        if port not in taken and _is_free(address, port):
            return port
    raise SandboxError(
        f"{address} has no free port between {_OTHER_PORTS.start} and {_OTHER_PORTS.stop}: end "
        "other servers on this machine"
    )


def _unprivileged(port: int) -> int:
    return port + _OFFSET if 0 < port < _FIRST_UNPRIVILEGED else port


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def pod_address(uid: str) -> str:
    """Return the address in the status of a pod; those of loopback are not allowed there."""
    digest = hashlib.sha256(uid.encode()).digest()
    return f"{_PODS}.{digest[0]}.{1 + digest[1] % 254}"
