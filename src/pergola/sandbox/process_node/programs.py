"""The programs that a process node can run, with adjustments for running without a container."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.bundle.image_reference import ImageReference
from pergola.kube.yaml import YamlError, dump, parse
from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from pergola.sandbox.images.catalogue import named, resolve
from pergola.sandbox.images.installation import NAME as PERGOLA
from pergola.sandbox.on_demand import (
    AWS_CLOUD_CONTROLLER_MANAGER,
    ETCD_BACKUP_RESTORE,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_APISERVER,
    GARDENER_RESOURCE_MANAGER,
    GARDENLET,
    MACHINE_CONTROLLER_AWS,
    MACHINE_CONTROLLER_MANAGER,
    MACHINE_CONTROLLER_MANAGER_LOCAL,
    PROVIDER_AWS,
    PROVIDER_LOCAL,
)
from pergola.sandbox.process_node.place import Place

_MAIN: Final = "import sys; from pergola.cli import main; sys.exit(main())"
_ADMISSION: Final = "pergola.sandbox.simulated.admission"
_BACKUP_RESTORE: Final = "pergola.sandbox.simulated.backup_restore"
_BIND_ADDRESS: Final = re.compile(r"(--[a-z]+-bind-address=):(\d+)")
_WEBHOOK_PORT: Final = re.compile(r"(--webhook-config-server-)port=(\d+)")
_PORT: Final = re.compile(r"(--(?:secure-)?port=)(\d+)")
_ETCD_SERVER: Final = re.compile(r"(?<=--etcd-servers=)https://([^:,]+):\d+")
_ETCD_FILES: Final = ("--etcd-cafile=", "--etcd-certfile=", "--etcd-keyfile=")
_ADVERTISED: Final = "--advertise-client-urls="
_CLIENTS: Final = "--listen-client-urls="
_IN_CLUSTER: Final = "inClusterConfig"
_ANYWHERE: Final = re.compile(r"0\.0\.0\.0(?::(\d+))?")


class NodeEnvironment(NamedTuple):
    """The environment that all processes of a namespace share.

    Attributes:
        directory: for sockets; its path is short.
        egress: the file that sends an API server's connections through the node's tunnel.
        proxy: the URL of the tunnel for other clients.
    """

    directory: Path
    egress: Path
    proxy: str

    def etcd_socket(self, host: str) -> str:
        """Return the URL of the socket of the etcd that advertises a host."""
        return f"unix://{self.directory / host}.sock"


Arguments = tuple[str, ...]


class Program(NamedTuple):
    """One program.

    Attributes:
        line: the start of its command line, before the container's arguments.
        adapt: from the container's arguments to those on this machine.
        is_proxied: whether it connects through the tunnel wherever no file of it says so.
        has_default_target: whether it has a target cluster even if its file names none.
    """

    line: tuple[str, ...]
    adapt: Callable[[Arguments, Place, NodeEnvironment], Arguments]
    is_proxied: bool = False
    has_default_target: bool = False


Programs = Mapping[str, Program]
"""Programs by the name of their image in the sandbox's catalogue, or by `NAME:TAG` for one tag."""

REQUIRED: Final = (ETCD, APISERVER, CONTROLLER_MANAGER)
"""The programs that must be built."""
OPTIONAL: Final = (GARDENER_APISERVER,)
"""The programs that run if they were built, which takes minutes; otherwise kwok simulates them."""

# Webhooks of an aggregated API server, and an address from a Secret that no pod mounts.
_PROXIED: Final = (GARDENER_APISERVER, GARDENLET, PROVIDER_AWS, PROVIDER_LOCAL)


OWN_RESOURCE_MANAGER: Final[Programs] = {
    GARDENER_RESOURCE_MANAGER: Program(
        (sys.executable, "-c", _MAIN, "resource-manager"), lambda args, *_: args
    )
}
"""Pergola in the place of the original resource manager."""


def programs(binaries: Mapping[str, Path]) -> Programs:
    """Return the programs that a node runs.

    Args:
        binaries: all of `REQUIRED`, and any of `OPTIONAL` and of a landscape.
    """
    return {
        PERGOLA: Program((sys.executable, "-c", _MAIN), _pergola, is_proxied=True),
        GARDENER_ADMISSION_CONTROLLER: Program((sys.executable, "-m", _ADMISSION), _unchanged),
        ETCD_BACKUP_RESTORE: Program((sys.executable, "-m", _BACKUP_RESTORE), _at_own_address),
        **{name: built_program(name, path) for name, path in binaries.items()},
    }


def repositories(names: Iterable[str]) -> list[str]:
    """Return the repositories of the images of programs."""
    untagged = {name.partition(":")[0] for name in names}
    return [name for offer in named(untagged) for name in (offer.repository, *offer.aliases)]


def program_of(container: JsonObject, programs: Programs) -> Program | None:
    """Return the program that runs a container, or None if the node does not have it."""
    image = container["image"]
    offer = resolve(image)
    if offer is None:
        return None
    tagged = f"{offer.name}:{ImageReference.parse(image).tag}"
    return programs.get(tagged) or programs.get(offer.name)


def built_program(name: str, binary: Path) -> Program:
    """Return the program with this name, as it was built."""
    return Program(
        (str(binary),),
        _ADAPT.get(name, _unchanged),
        name in _PROXIED,
        name == GARDENER_RESOURCE_MANAGER,
    )


def adapt_file(content: bytes, place: Place, shared: NodeEnvironment, program: Program) -> bytes:
    """Return a file of a container as its process needs it.

    Paths are local, kubeconfigs lead through the tunnel, and servers listen on the process's own
    address. A target without a kubeconfig is the cluster in which the pod runs.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    return _adapted_settings(place.localised(text), place, shared, program).encode()


def _adapted_settings(text: str, place: Place, shared: NodeEnvironment, program: Program) -> str:
    try:
        value = parse(text.encode())
    except YamlError:
        return text
    if not isinstance(value, dict) or "kind" not in value:
        return text
    settings: JsonObject = value
    if settings["kind"] == "Config":
        for cluster in maps_at(settings, "clusters"):
            cluster["cluster"]["proxy-url"] = shared.proxy
    elif "server" in settings:
        for server in map_at(settings, "server").values():
            if isinstance(port := server.get("port"), int):
                server["bindAddress"] = place.address
                server["port"] = place.claim(port)
        target = map_at(settings, "targetClientConnection")
        if (target or program.has_default_target) and not target.get("kubeconfig"):
            settings["targetClientConnection"] = {**target, "kubeconfig": str(place.access)}
    else:
        return text
    return dump(settings)


def _etcd(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Listen on a socket, too: gardener-apiserver cannot use the tunnel."""
    advertised = next(arg for arg in args if arg.startswith(_ADVERTISED)).removeprefix(_ADVERTISED)
    socket = shared.etcd_socket(urlsplit(advertised).hostname or "")
    return (
        *(
            f"{local},{socket}" if local.startswith(_CLIENTS) else local
            for local in _at_own_address(args, place, shared)
        ),
        "--unsafe-no-fsync",
    )


def _api_server(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    return (
        *_controller_manager(args, place, shared),
        f"--advertise-address={place.address}",
        # Loopback addresses are not allowed as endpoints of the `kubernetes` Service.
        "--endpoint-reconciler-type=none",
        f"--egress-selector-config-file={shared.egress}",
    )


def _gardener_api_server(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Connect to etcd by its socket, without TLS.

    The library of aggregated API servers has no egress to etcd, and looks up the host's name.
    """
    kept = (arg for arg in args if not arg.startswith(_ETCD_FILES))
    adapted = (_ETCD_SERVER.sub(lambda host: shared.etcd_socket(host[1]), arg) for arg in kept)
    return _controller_manager(tuple(adapted), place, shared)


def _controller_manager(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    del shared
    return (*_at_own_ports(args, place), f"--bind-address={place.address}")


def _pergola(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Listen on the process's own address."""
    del shared

    def endpoint(match: re.Match[str]) -> str:
        return f"{match[1]}{place.address}:{place.claim(int(match[2]))}"

    def webhooks(match: re.Match[str]) -> str:
        return f"{match[1]}port={place.claim(int(match[2]))}"

    adapted = (_BIND_ADDRESS.sub(endpoint, arg) for arg in args)
    hosts = (
        f"{found[1]}host={place.address}" for arg in args if (found := _WEBHOOK_PORT.match(arg))
    )
    return (*(_WEBHOOK_PORT.sub(webhooks, arg) for arg in adapted), *hosts)


def _unchanged(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Keep the arguments of a program that reads its addresses from a file."""
    del place, shared
    return args


def _at_own_address(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Replace all addresses to listen on, with their ports."""
    del shared

    def own(match: re.Match[str]) -> str:
        port = match[1]
        return f"{place.address}:{place.claim(int(port))}" if port else place.address

    return tuple(_ANYWHERE.sub(own, arg) for arg in _at_own_ports(args, place))


def _at_own_ports(args: Arguments, place: Place) -> Arguments:
    return tuple(
        _PORT.sub(lambda match: f"{match[1]}{place.claim(int(match[2]))}", arg) for arg in args
    )


def _machine_controller(args: Arguments, place: Place, shared: NodeEnvironment) -> Arguments:
    """Listen on the process's own address, and read the access to its cluster from a file."""
    own = (arg.replace(_IN_CLUSTER, str(place.access)) for arg in _at_own_ports(args, place))
    del shared
    return (*own, f"--address={place.address}")


_ADAPT: Final = {
    # The flags of Gardener's library are those of Pergola's.
    PROVIDER_AWS: _pergola,
    PROVIDER_LOCAL: _pergola,
    MACHINE_CONTROLLER_AWS: _machine_controller,
    MACHINE_CONTROLLER_MANAGER: _machine_controller,
    MACHINE_CONTROLLER_MANAGER_LOCAL: _machine_controller,
    ETCD: _etcd,
    APISERVER: _api_server,
    AWS_CLOUD_CONTROLLER_MANAGER: _controller_manager,
    CONTROLLER_MANAGER: _controller_manager,
    SCHEDULER: _controller_manager,
    GARDENER_APISERVER: _gardener_api_server,
}
