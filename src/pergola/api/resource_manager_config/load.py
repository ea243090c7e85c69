"""Loading of the resource manager's configuration from a parsed file."""

from collections.abc import Collection
from typing import TypeAlias

from pergola.api import component_config
from pergola.api.objects import JsonValue
from pergola.api.resource_manager_config.defaults import fill_defaults
from pergola.api.resource_manager_config.spellings import unify_spellings
from pergola.api.resource_manager_config.v1alpha1 import (
    API_VERSION,
    KIND,
    ResourceManagerConfiguration,
)
from pergola.api.resource_manager_config.validation import check

Loaded: TypeAlias = component_config.Loaded[ResourceManagerConfiguration]


def configuration_from(
    value: JsonValue, *, source: str = "configuration", unchecked: Collection[str] = ()
) -> Loaded:
    """Return the configuration in a parsed file.

    Settings may have their old or new names. An unknown field is a warning.

    Args:
        value: the JSON.
        source: the name of the file in errors.
        unchecked: blocks that need not be complete, such as `leaderElection`.

    Raises:
        ConfigurationInvalid: with all findings, each at the path that the file has.
    """
    return component_config.load(
        ResourceManagerConfiguration,
        value,
        api_version=API_VERSION,
        kind=KIND,
        source=source,
        fill_defaults=fill_defaults,
        check=check,
        unify=unify_spellings,
        unchecked=unchecked,
    )
