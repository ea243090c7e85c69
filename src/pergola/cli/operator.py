"""`pergola operator`."""

from pathlib import Path


class OperatorCommandError(Exception):
    """The command line is incomplete; the text says what is missing, with an example."""


def operator(*, config: Path | None = None) -> None:
    """Keep a garden as its Garden describes it: the virtual cluster, Gardener, and what they need.

    Runs until SIGTERM or SIGINT, like the original gardener-operator: same configuration file,
    environment, endpoints, metrics, webhooks and leader election. KUBECONFIG overrides the
    kubeconfig of the configuration; without one the pod's service account is used.

    Exits with 0 after a signal, and with 1 if it cannot start or loses leadership.

    Parameters
    ----------
    config
        The configuration file, which is required: kind OperatorConfiguration of
        operator.config.gardener.cloud/v1alpha1.
    """
    from pergola.operator.app import run
    from pergola.resource_manager.registration import garden_webhooks

    if config is None:
        raise OperatorCommandError(
            "missing config file: --config is required, as in "
            "`pergola operator --config operator.yaml`"
        )
    run(config, garden_webhooks)
