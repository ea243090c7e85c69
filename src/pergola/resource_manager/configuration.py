"""The configuration of the resource manager's process: from a file to settings of its parts.

The file's schema is `pergola.api.resource_manager_config`.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from pergola.api.resource_manager_config import (
    ClientConnection,
    ConfigurationInvalid,
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.resource_manager.controllers.garbage_collector import Settings as GarbageSettings
from pergola.resource_manager.controllers.health import Settings as HealthSettings
from pergola.resource_manager.controllers.managed_resource.reconcile import Settings
from pergola.resource_manager.controllers.secret import Settings as SecretSettings
from pergola.resource_manager.manager import Options
from pergola.runtime.process.component_config import options_of, read_file
from pergola.runtime.process.options import ProcessOptions, StartError

SOURCE_VARIABLE: Final = "KUBECONFIG"
TARGET_VARIABLE: Final = "TARGET_KUBECONFIG"


def read_configuration(
    path: Path, environ: Mapping[str, str] = os.environ, *, offline: bool = False
) -> tuple[ResourceManagerConfiguration, list[str]]:
    """Return the effective configuration, and warnings about settings without effect.

    Kubeconfigs named by the environment replace those of the file.

    Args:
        offline: skip checks that matter only to a running process.

    Raises:
        StartError: the file cannot be read, is not valid YAML, or violates rules, all of which are
            listed.
    """
    value = read_file(path)
    try:
        config, warnings = configuration_from(
            value,
            source=f"configuration file {path}",
            unchecked=("leaderElection",) if offline else (),
        )
    except ConfigurationInvalid as error:
        raise StartError(str(error)) from None
    if kubeconfig := environ.get(SOURCE_VARIABLE):
        config.source_client_connection.kubeconfig = kubeconfig
    if kubeconfig := environ.get(TARGET_VARIABLE):
        config.target_client_connection = config.target_client_connection or ClientConnection()
        config.target_client_connection.kubeconfig = kubeconfig
    return config, warnings


def overrides(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that override a kubeconfig of the file, with their values."""
    variables = (SOURCE_VARIABLE, TARGET_VARIABLE)
    return {name: environ[name] for name in variables if environ.get(name)}


def options(
    config: ResourceManagerConfiguration, extra_target_namespaces: Sequence[str] = ()
) -> Options:
    """Return the options of the controllers of ManagedResources."""
    controllers = config.controllers
    resources = controllers.managed_resources
    target = config.target_client_connection
    namespaces = (*(target.namespaces if target else ()), *extra_target_namespaces)
    return Options(
        resource_class=controllers.resource_class,
        cluster_id=controllers.cluster_id,
        source_namespaces=tuple(config.source_client_connection.namespaces),
        target_namespaces=namespaces,
        managed_resource=Settings(
            workers=resources.concurrent_syncs,
            sync_period=resources.sync_period.total_seconds(),
            always_update=resources.always_update,
            managed_by=resources.managed_by_label_value,
        ),
        health=HealthSettings(
            workers=controllers.health.concurrent_syncs,
            sync_period=controllers.health.sync_period.total_seconds(),
        ),
        secret=SecretSettings(
            workers=controllers.secret.concurrent_syncs, mode=controllers.secret.mode
        ),
        garbage=_garbage(config, namespaces) if controllers.garbage_collector.enabled else None,
    )


def _garbage(config: ResourceManagerConfiguration, namespaces: tuple[str, ...]) -> GarbageSettings:
    collector = config.controllers.garbage_collector
    return GarbageSettings(
        sync_period=collector.sync_period.total_seconds() if collector.sync_period else 0,
        minimum_age=collector.minimum_age or timedelta(),
        namespaces=namespaces,
    )


def process_options(config: ResourceManagerConfiguration) -> ProcessOptions:
    """Return the options of the process."""
    server = config.server
    return options_of(
        server.health_probes,
        server.metrics,
        config.debugging,
        config.leader_election,
        config.sharding,
    )
