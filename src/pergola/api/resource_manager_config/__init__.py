"""The resource manager's configuration file (spec 10 §13.2): its type, defaults and validation.

`configuration_from` turns a parsed file into a `ResourceManagerConfiguration`. It reads neither
files nor the environment.
"""

from pergola.api.component_config import ConfigurationInvalid
from pergola.api.resource_manager_config.load import Loaded, configuration_from
from pergola.api.resource_manager_config.v1alpha1 import (
    API_VERSION,
    KIND,
    ClientConnection,
    LeaderElection,
    ResourceManagerConfiguration,
)

__all__ = [
    "API_VERSION",
    "KIND",
    "ClientConnection",
    "ConfigurationInvalid",
    "LeaderElection",
    "Loaded",
    "ResourceManagerConfiguration",
    "configuration_from",
]
