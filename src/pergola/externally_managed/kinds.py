"""Which kinds of InfraClusters a cluster serves, and how each of them is to be read."""

from pergola.api.cluster_api import crd_name
from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, JsonObject, Key
from pergola.externally_managed.contract import ContractError, contract_of, kind_of
from pergola.externally_managed.manager import Managed
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


def parse_kind(text: str) -> GroupKind:
    """A kind as it is written on a command line: `AWSCluster.infrastructure.cluster.x-k8s.io`.

    Raises:
        ContractError: there is no group.
    """
    kind, _, group = text.partition(".")
    if not kind or not group:
        raise ContractError(
            f'"{text}" is no kind with its group; write for example '
            "AWSCluster.infrastructure.cluster.x-k8s.io"
        )
    return GroupKind(group, kind)


async def read_crd(client: Client, kind: GroupKind) -> JsonObject:
    """The CRD of a kind, found by its computed name, as core finds it.

    Raises:
        ContractError: there is none.
    """
    name = crd_name(kind)
    try:
        return await client.get(CRD, Key("", name))
    except NotFound:
        raise ContractError(
            f"CustomResourceDefinition {name} does not exist; install the provider's CRDs"
        ) from None


async def managed_kind(client: Client, kind: GroupKind) -> Managed:
    """How InfraClusters of a kind are read, and which finalizer their provider puts on them.

    Raises:
        ContractError: there is no such kind, or its CRD follows no contract.
    """
    crd = await read_crd(client, kind)
    contract = contract_of(crd)
    return Managed(kind_of(crd, contract), contract, (provider_finalizer(kind),))


def provider_finalizer(kind: GroupKind) -> str:
    """The finalizer that providers put on InfraClusters of a kind, by custom."""
    return f"{kind.kind.lower()}.{kind.group}"
