"""The inputs of the commands of `pergola network`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pergola.cli.network.target import NetworkError

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.extension_api.caller import Waiting
    from pergola.kube.client import Client
    from pergola.runtime.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Work:
    """The inputs of a command.

    Attributes:
        network: the manifest; None if only a name was given, and the cluster has no such Network.
    """

    client: "Client"
    network: "JsonObject | None"
    key: "Key"
    clock: "Clock"
    waiting: "Waiting"

    @property
    def manifest(self) -> "JsonObject":
        """The manifest, for commands that require one.

        Raises:
            NetworkError: there is none.
        """
        if self.network is None:
            raise NetworkError(f"Network {self.key} does not exist; name its manifest with -f")
        return self.network
