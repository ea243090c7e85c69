"""The InfraClusters that a command works on, selected as in kubectl."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from pergola.cli.cluster_options import NamespaceOptions

if TYPE_CHECKING:
    from pergola.api.objects import GroupKind, JsonObject, Key
    from pergola.externally_managed.kinds import Managed
    from pergola.externally_managed.sources import Source
    from pergola.kube.client import Client


class InfraError(Exception):
    """The command cannot do what was requested; the text says why and what to do."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target(NamespaceOptions):
    """The kind of InfraClusters, and their cluster.

    Attributes:
        kind: Kind and group, such as AWSCluster.infrastructure.cluster.x-k8s.io; not needed with
            KIND/NAME.
    """

    kind: str = ""


@dataclass(frozen=True)
class Opened:
    """A connection to the management cluster, and the kind that the command works on."""

    client: "Client"
    managed: "Managed"
    crd: "JsonObject"

    @asynccontextmanager
    async def source(self, reference: str) -> AsyncGenerator["Source"]:
        """Yield the source that reads networks of source annotations."""
        from pergola.externally_managed.aws import AWS, AWS_CLUSTER, AwsSource
        from pergola.externally_managed.sources import PlainSource

        is_aws = reference.partition("/")[0].lower() == AWS
        if is_aws and self.managed.gvk.group_kind == AWS_CLUSTER:
            async with AwsSource(self.client) as aws:
                yield aws
        else:
            yield PlainSource(self.client)


def run(
    target: Target,
    argument: str,
    act: Callable[[Opened, str], Coroutine[Any, Any, None]],
) -> None:
    """Call `act` with the opened cluster and the name in `NAME` or `KIND/NAME`.

    Raises:
        InfraError: the argument and --kind do not determine the kind.
        KubeError, ContractError: the cluster cannot be read, or has no such kind.
    """
    kind, _, name = argument.rpartition("/")

    async def main() -> None:
        from pergola.externally_managed.kinds import managed_by_crd, read_crd

        provider_kind = _kind(target.kind, kind)
        async with target.connect() as client:
            crd = await read_crd(client, provider_kind)
            await act(Opened(client, managed_by_crd(crd, provider_kind), crd), name)

    asyncio.run(main())


def key_of(target: Target, name: str) -> "Key":
    """Return the key of the InfraCluster with this name."""
    from pergola.api.objects import Key

    return Key(target.chosen_namespace(), name)


def _kind(option: str, prefix: str) -> "GroupKind":
    from pergola.api.cluster_api import INFRASTRUCTURE_GROUP
    from pergola.api.objects import GroupKind
    from pergola.externally_managed.kinds import parse_kind

    if option and prefix:
        raise InfraError(f"the kind is given twice: --kind {option} and {prefix}/; omit one")
    if prefix:
        return parse_kind(prefix) if "." in prefix else GroupKind(INFRASTRUCTURE_GROUP, prefix)
    if not option:
        raise InfraError(
            "which kind? Write KIND/NAME, such as awscluster/demo, or add --kind "
            "AWSCluster.infrastructure.cluster.x-k8s.io"
        )
    return parse_kind(option)
