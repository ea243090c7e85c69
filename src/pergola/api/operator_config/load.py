"""Loading of the operator's configuration from a parsed file."""

from typing import TypeAlias

from pergola.api import component_config
from pergola.api.objects import JsonValue
from pergola.api.operator_config.v1alpha1 import (
    API_VERSION,
    KIND,
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
        check=check,
        strict=True,
    )
