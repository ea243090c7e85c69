"""The configuration of the operator's process: from its file to the options of its parts.

The file's schema is `pergola.api.operator_config`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pergola.api.operator_config import (
    ConfigurationInvalid,
    OperatorConfiguration,
    configuration_from,
)
from pergola.kube.kubeconfig import ClusterConfig, in_cluster, load
from pergola.runtime.process.component_config import options_of, read_file
from pergola.runtime.process.options import ProcessOptions, StartError

KUBECONFIG: Final = "KUBECONFIG"
"""The environment variable that overrides the kubeconfig of the runtime cluster."""


def read_configuration(
    path: Path, environ: Mapping[str, str] = os.environ
) -> OperatorConfiguration:
    """Return the configuration in a file; the environment may override its kubeconfig.

    Raises:
        StartError: The file cannot be read, is not valid YAML, or violates rules, all of which are
            listed.
    """
    value = read_file(path)
    try:
        config = configuration_from(value, source=f"configuration file {path}").config
    except ConfigurationInvalid as error:
        raise StartError(str(error)) from None
    if kubeconfig := environ.get(KUBECONFIG):
        config.runtime_client_connection.kubeconfig = kubeconfig
    return config


def runtime_cluster(config: OperatorConfiguration) -> ClusterConfig:
    """Return the runtime cluster: that of the kubeconfig, or the one that the process runs in.

    Raises:
        ConfigurationError: Neither exists.
    """
    kubeconfig = config.runtime_client_connection.kubeconfig
    return load(kubeconfig) if kubeconfig else in_cluster()


def process_options(config: OperatorConfiguration) -> ProcessOptions:
    """Return the options of the process."""
    server = config.server
    return options_of(
        server.health_probes, server.metrics, config.debugging, config.leader_election
    )
