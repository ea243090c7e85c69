"""What the configuration file of every component has in common, and how such a file is read.

A component's own configuration derives from these types where its defaults differ, and passes its
type, its defaults and its rules to `load`.
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
