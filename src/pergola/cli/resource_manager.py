"""`pergola resource-manager`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


class ResourceManagerCommandError(Exception):
    """The command line is incomplete; the text says what is missing, with an example."""


def resource_manager(
    *,
    config: Path | None = None,
    extra_target_namespace: Annotated[list[str] | None, Parameter(negative="")] = None,
) -> None:
    """Keep objects in a cluster as ManagedResources describe them.

    Runs until SIGTERM or SIGINT, like the original gardener-resource-manager: same configuration
    file, environment, endpoints, metrics and leader election. KUBECONFIG overrides the source
    cluster of the configuration, TARGET_KUBECONFIG the target; without a kubeconfig the pod's
    service account is used.

    Exits with 0 after a signal, and with 1 if it cannot start or loses leadership.

    Parameters
    ----------
    config
        The configuration file, which is required: kind ResourceManagerConfiguration of
        resourcemanager.config.gardener.cloud/v1alpha1.
    extra_target_namespace
        A namespace to add to targetClientConnection.namespaces; may be given several times.
    """
    from pergola.resource_manager.app import run

    if config is None:
        raise ResourceManagerCommandError(
            "--config is required: the file with a ResourceManagerConfiguration, as in "
            "`pergola resource-manager --config examples/resource-manager.yaml`"
        )
    run(config, extra_target_namespace or [])
