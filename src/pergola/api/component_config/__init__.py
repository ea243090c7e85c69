"""Shared parts of all components' configuration files, and their loading.

A component's configuration derives from these types if its defaults differ, and passes its type,
its defaults and its rules to `load`.
"""

from pergola.api.component_config.clients import ClientConnection
from pergola.api.component_config.debugging import Debugging, LogFormat, LogLevel
from pergola.api.component_config.leader_election import LeaderElection
from pergola.api.component_config.load import ConfigurationInvalid, Loaded, load
from pergola.api.component_config.server import Address, Port

__all__ = [
    "Address",
    "ClientConnection",
    "ConfigurationInvalid",
    "Debugging",
    "LeaderElection",
    "Loaded",
    "LogFormat",
    "LogLevel",
    "Port",
    "load",
]
