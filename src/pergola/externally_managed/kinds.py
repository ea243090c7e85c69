"""The kinds of InfraClusters that a cluster serves, and their contracts."""

from dataclasses import dataclass

from pergola.api.cluster_api import crd_name, provider_finalizer
from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key
from pergola.externally_managed.contract import Contract, ContractError, contract_of, kind_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


@dataclass(frozen=True, slots=True)
class Managed:
    """A kind of InfraCluster.

    Attributes:
        finalizers: the finalizers that the provider adds to its InfraClusters.
    """

    gvk: GroupVersionKind
    contract: Contract
    finalizers: tuple[str, ...] = ()


def parse_kind(text: str) -> GroupKind:
    """Parse a kind such as `AWSCluster.infrastructure.cluster.x-k8s.io`.

    Raises:
        ContractError: the group is missing.
    """
    kind, _, group = text.partition(".")
    if not kind or not group:
        raise ContractError(
            f'"{text}" is not a kind with its group; write for example '
            "AWSCluster.infrastructure.cluster.x-k8s.io"
        )
    return GroupKind(group, kind)


async def read_crd(client: Client, kind: GroupKind) -> JsonObject:
    """Read the CRD of a kind by its computed name, as core does.

    Raises:
        ContractError: the CRD does not exist.
    """
    name = crd_name(kind)
    try:
        return await client.get(CRD, Key("", name))
    except NotFound:
        raise ContractError(
            f"CustomResourceDefinition {name} does not exist; install the provider's CRDs"
        ) from None


async def managed_kind(client: Client, kind: GroupKind) -> Managed:
    """Return the managed kind of InfraClusters.

    Raises:
        ContractError: the kind is not installed, or its CRD follows no contract.
    """
    return managed_by_crd(await read_crd(client, kind), kind)


def managed_by_crd(crd: JsonObject, kind: GroupKind) -> Managed:
    """Return the managed kind that a CRD defines.

    Raises:
        ContractError: the CRD follows no contract.
    """
    contract = contract_of(crd)
    return Managed(kind_of(crd, contract), contract, (provider_finalizer(kind),))
