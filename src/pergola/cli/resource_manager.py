"""`pergola resource-manager`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def resource_manager(
    *,
    config: Path,
    extra_target_namespace: Annotated[list[str] | None, Parameter(negative="")] = None,
) -> None:
    """Keep objects in a cluster as ManagedResources describe them.

    Runs until SIGTERM or SIGINT, as the original gardener-resource-manager does: same
    configuration file, same environment, endpoints, metrics and leader election. KUBECONFIG
    overrides the source cluster of the configuration, TARGET_KUBECONFIG the target; without a
    kubeconfig the pod's service account is used.

    Exits with 0 after a signal, and with 1 when it cannot start or loses the leadership.

    Parameters
    ----------
    config
        The configuration file: kind ResourceManagerConfiguration of
        resourcemanager.config.gardener.cloud/v1alpha1.
    extra_target_namespace
        A namespace to add to targetClientConnection.namespaces; may be given several times.
    """
    from pergola.resource_manager.app import run

    run(config, extra_target_namespace or [])
