"""The Networks that a command works on, selected as in kubectl."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import NamespaceOptions

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.kube.client import Client

_KINDS = ("network", "networks", "network.extensions.gardener.cloud",
          "networks.extensions.gardener.cloud")  # fmt: skip


class NetworkError(Exception):
    """The command cannot do what was requested; the text says why and what to do."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target(NamespaceOptions):
    """A Network, and its cluster.

    Attributes:
        file: Manifest of the Network; - reads it from the standard input.
        extension: The extension whose heartbeat shows whether it runs; by default any whose name
            ends with the type of the Network.
        extension_namespace: The namespace of that extension; by default all are searched.
    """

    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = ""
    extension: str = ""
    extension_namespace: str = ""


def name_of_argument(argument: str) -> str:
    """Return the name in `NAME` or `network/NAME`.

    Raises:
        NetworkError: it is not the name of a Network.
    """
    kind, slash, name = argument.rpartition("/")
    if slash and kind.lower() not in _KINDS:
        raise NetworkError(f'"{argument}" is not a Network; write network/NAME, or only NAME')
    if not name:
        raise NetworkError(f'"{argument}" has no name; write network/NAME')
    return name


def manifest_of(target: Target, argument: str) -> "JsonObject | None":
    """Return the manifest of the Network that a command names; None if it names only a name.

    Raises:
        NetworkError: no Network is named, or the name and the file contradict each other.
        NetworkFileError: the file does not contain one Network.
    """
    from pergola.api.objects import name_of, namespace_of
    from pergola.cli.network.file import read_one
    from pergola.extension_api.caller import NETWORK

    name = name_of_argument(argument) if argument else ""
    if not target.file:
        if not name:
            raise NetworkError("name a Network: network/NAME -n NAMESPACE, or its manifest with -f")
        return None
    network = read_one(target.file, NETWORK.gvk)
    stated = namespace_of(network)
    if target.namespace and stated and target.namespace != stated:
        raise NetworkError(
            f"{target.file} is for namespace {stated}, but -n says {target.namespace}"
        )
    if name and name != name_of(network):
        raise NetworkError(f"{target.file} is for Network {name_of(network)}, not {name}")
    return network


def key_of(
    target: Target, argument: str, manifest: "JsonObject | None", default_namespace: str
) -> "Key":
    """Return the key of the Network, and complete the namespace of its manifest."""
    from pergola.api.objects import Key, name_of, namespace_of

    if manifest is None:
        return Key(target.namespace or default_namespace, name_of_argument(argument))
    namespace = target.namespace or namespace_of(manifest) or default_namespace
    manifest["metadata"]["namespace"] = namespace
    return Key(namespace, name_of(manifest))


async def stored(client: "Client", key: "Key") -> "JsonObject | None":
    """Return the Network in the cluster; None if it does not exist."""
    from pergola.extension_api.caller import NETWORK
    from pergola.kube.errors import NotFound

    try:
        return await client.get(NETWORK.gvk, key)
    except NotFound:
        return None
