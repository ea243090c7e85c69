"""The input and the output of a provider's machines (spec 31 §4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extensions.workers.pool import C, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan(Generic[C]):
    """The input of rendering: the same plan renders the same machines.

    Attributes:
        pools: in the order of the Worker.
        region: the `spec.region`.
        infrastructure: the `spec.infrastructureProviderStatus`; empty if there is none.
        status: the Worker's `status.providerStatus`, with what earlier runs rendered; empty if
            there is none.
        namespace: of the Worker on the seed.
        secret: the `spec.secretRef`, the Secret with the credentials of the cloud.
    """

    pools: Sequence[Pool[C]]
    region: str
    infrastructure: JsonObject
    status: JsonObject
    cluster: Cluster
    shoot: Shoot
    namespace: str
    secret: JsonObject

    @property
    def technical_id(self) -> str:
        """The name of the Shoot in the cloud and in names of machines."""
        named = map_at(self.shoot.raw, "status").get("technicalID")
        return named if isinstance(named, str) and named else self.namespace


class HashInput(NamedTuple):
    """A value whose change replaces all machines of a pool.

    Attributes:
        field: where users find it, such as `volume.encrypted`.
        value: the text that is hashed.
    """

    field: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneMachines:
    """The machines of a pool in one zone.

    Attributes:
        zone: the zone.
        provider_spec: what machine-controller-manager's driver for the cloud reads.
        node_template: what the cluster autoscaler reads, to scale from zero.
        class_labels: labels of the MachineClass.
        node_labels: labels of the nodes in addition to those of the pool.
    """

    zone: str
    provider_spec: JsonObject
    node_template: JsonObject
    class_labels: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMachines:
    """The machines of a pool.

    Attributes:
        hash_inputs: what replaces the machines when it changes, besides the node agent's Secret;
            in Gardener's order. In a pool with updates in place, what replaces them nevertheless.
        zones: one entry for each of the pool's zones, in their order.
    """

    hash_inputs: Sequence[HashInput]
    zones: Sequence[ZoneMachines]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """The machines that a provider renders from a plan.

    Attributes:
        pools: one entry for each pool, in their order.
        status: the new `status.providerStatus`; None to keep the old one.
    """

    pools: Sequence[PoolMachines]
    status: JsonObject | None = None
