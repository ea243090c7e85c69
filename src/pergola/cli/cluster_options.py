"""The options that name the cluster of a command, the same for every command."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import ClusterConfig


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """A cluster, named as with kubectl.

    Attributes:
        kubeconfig: Kubeconfig of the cluster; by default $KUBECONFIG, ~/.kube/config, or the
            service account of the pod.
        context: Context in the kubeconfig; by default the current one.
    """

    kubeconfig: Path | None = None
    context: str | None = None

    @property
    def are_given(self) -> bool:
        """Whether the user named a cluster."""
        return bool(self.kubeconfig or self.context)

    def config(self) -> "ClusterConfig":
        """Return the API server and the credentials for it.

        Raises:
            ConfigurationError: there is no usable kubeconfig, or it has no such context.
        """
        from pergola.kube.kubeconfig import load

        return load(self.kubeconfig, self.context)

    def connect(self) -> "Client":
        """Return a client of the cluster; raises as `config` does."""
        from pergola.kube.client import Client

        return Client.connect(self.config())


DEFAULT_CLUSTER: Final = ClusterOptions()
"""The cluster of kubectl, or of the pod."""
