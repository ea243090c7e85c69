"""The options that name the cluster of a command, the same for every command, as with kubectl."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import ClusterConfig

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


class ClusterOptionError(Exception):
    """An option about the cluster is not valid; the text says how to write it."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """A cluster, named as with kubectl.

    Attributes:
        kubeconfig: Kubeconfig of the cluster; by default $KUBECONFIG, ~/.kube/config, or the
            service account of the pod.
        context: Context in the kubeconfig; by default the current one.
        as_user: Act as this user, whom the kubeconfig's user must be allowed to impersonate.
        as_group: Act as a member of this group; repeat for several. Needs --as.
        request_timeout: Time limit of each request, such as 1s, 2m or 3h, or a number of seconds; 0
            for none, and 30s by default.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    as_user: Annotated[str, Parameter(name="--as")] = ""
    as_group: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    request_timeout: str = ""

    @property
    def are_given(self) -> bool:
        """Whether the user named a cluster, or an identity there."""
        return bool(self.kubeconfig or self.context or self.as_user)

    def config(self) -> "ClusterConfig":
        """Return the API server and the credentials for it.

        Raises:
            ClusterOptionError: an option is not valid.
            ConfigurationError: there is no usable kubeconfig, or it has no such context.
        """
        from pergola.kube.kubeconfig import load

        if self.as_group and not self.as_user:
            raise ClusterOptionError("--as-group needs --as: groups alone cannot be impersonated")
        config = load(self.kubeconfig, self.context)
        if self.as_user:
            config = config.impersonating(self.as_user, self.as_group)
        if self.request_timeout:
            config = replace(config, request_seconds=_seconds(self.request_timeout))
        return config

    def connect(self) -> "Client":
        """Return a client of the cluster; raises as `config` does."""
        from pergola.kube.client import Client

        return Client.connect(self.config())

    def beside(self, kubeconfig: Path | None, context: str | None = None) -> "ClusterOptions":
        """Return the options of a second cluster, with the same time limit."""
        return ClusterOptions(
            kubeconfig=kubeconfig, context=context, request_timeout=self.request_timeout
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NamespaceOptions(ClusterOptions):
    """A namespace of a cluster.

    Attributes:
        namespace: Namespace; by default that of the kubeconfig's context.
    """

    namespace: Annotated[str, Parameter(alias="-n")] = ""

    def chosen_namespace(self) -> str:
        """Return the given namespace, or that of the context; raises as `config` does."""
        return self.namespace or self.config().namespace


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScopeOptions(NamespaceOptions):
    """One or all namespaces of a cluster.

    Attributes:
        all_namespaces: All namespaces.
    """

    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False

    def scope(self) -> str | None:
        """Return the namespace to list, or None for all; raises as `config` does.

        Raises:
            ClusterOptionError: both are given.
        """
        if self.namespace and self.all_namespaces:
            raise ClusterOptionError("give either --namespace or --all-namespaces")
        return None if self.all_namespaces else self.chosen_namespace()

    def wide_scope(self) -> str | None:
        """Return the given namespace, or None for all, the default; raises as `scope` does."""
        return self.scope() if self.namespace else None


DEFAULT_CLUSTER: Final = ClusterOptions()
"""The cluster of kubectl, or of the pod."""


def _seconds(text: str) -> float | None:
    """Return a time limit in kubectl's syntax; None for no limit."""
    from pergola.api.durations import DurationError, parse_duration

    try:
        seconds = float(text) if _SECONDS.fullmatch(text) else parse_duration(text).total_seconds()
    except DurationError:
        seconds = -1.0
    if seconds < 0:
        raise ClusterOptionError(
            f'--request-timeout is "{text}"; write a number of seconds, or a duration such as 1s, '
            "2m or 3h; 0 sets no limit"
        )
    return seconds or None
