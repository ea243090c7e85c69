"""Loading of the operator's configuration from a parsed file."""

from typing import TypeAlias

from pergola.api import component_config
from pergola.api.objects import JsonValue
from pergola.api.operator_config.v1alpha1 import (
    API_VERSION,
    KIND,
    ClientConnection,
    LeaderElection,
    OperatorConfiguration,
)
from pergola.api.operator_config.validation import check

Loaded: TypeAlias = component_config.Loaded[OperatorConfiguration]


def configuration_from(value: JsonValue, *, source: str = "configuration") -> Loaded:
    """Return the configuration in a parsed file. An unknown field is an error.

    Args:
        value: The JSON.
        source: The name of the file in errors.

    Raises:
        ConfigurationInvalid: With all findings, each at its path.
    """
    return component_config.load(
        OperatorConfiguration,
        value,
        api_version=API_VERSION,
        kind=KIND,
        source=source,
        fill_defaults=_fill_defaults,
        check=check,
        strict=True,
    )


def _fill_defaults(config: OperatorConfiguration) -> None:
    """Replace zero and empty values with defaults, where the original does."""
    for connection in (config.runtime_client_connection, config.virtual_client_connection):
        connection.qps = connection.qps or ClientConnection().qps
        connection.burst = connection.burst or ClientConnection().burst
    election, usual = config.leader_election, LeaderElection()
    election.resource_lock = election.resource_lock or usual.resource_lock
    election.resource_name = election.resource_name or usual.resource_name
    election.resource_namespace = election.resource_namespace or usual.resource_namespace
