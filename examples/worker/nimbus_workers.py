"""The machines of an invented cloud."""

from collections.abc import Iterator

from pergola.api.field_errors import Cause, required
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.declare import Value
from pergola.extensions.workers import (
    HashInput,
    Machines,
    Pool,
    PoolMachines,
    WorkerPlan,
    WorkerProvider,
    ZoneMachines,
)


class NimbusWorkerConfig(Value):
    """The owner's configuration: `providerConfig` of a worker pool."""

    spot: bool = False
    """Whether the cloud may take the machines away at any time."""


class NimbusWorker(WorkerProvider[NimbusWorkerConfig]):
    """Workers of type `nimbus`."""

    type = "nimbus"
    name = "provider-nimbus"
    provider = "Nimbus"
    config = NimbusWorkerConfig
    config_gvk = GroupVersionKind("nimbus.example.org", "v1alpha1", "WorkerConfig")

    def check(self, plan: WorkerPlan[NimbusWorkerConfig]) -> Iterator[Cause]:
        """Yield the problems of a Worker."""
        if not plan.infrastructure.get("networkID"):
            yield required("spec.infrastructureProviderStatus.networkID", "the network is missing")

    def render(self, plan: WorkerPlan[NimbusWorkerConfig]) -> Machines:
        """Return the machines of a plan."""
        return Machines(pools=[_machines(plan, pool) for pool in plan.pools])


def _machines(plan: WorkerPlan[NimbusWorkerConfig], pool: Pool[NimbusWorkerConfig]) -> PoolMachines:
    """Return the machines of a pool; machines for spot prices replace others, and vice versa."""
    inputs = [HashInput("providerConfig.spot", "true")] if pool.config.spot else []
    return PoolMachines(
        hash_inputs=inputs, zones=[_in_zone(plan, pool, zone) for zone in pool.zones]
    )


def _in_zone(
    plan: WorkerPlan[NimbusWorkerConfig], pool: Pool[NimbusWorkerConfig], zone: str
) -> ZoneMachines:
    name, version = pool.image
    spec: JsonObject = {
        "image": f"{name}-{version}",
        "size": pool.machine_type,
        "network": plan.infrastructure["networkID"],
        "spot": pool.config.spot,
    }
    template: JsonObject = {
        "capacity": pool.raw["nodeTemplate"]["capacity"],
        "instanceType": pool.machine_type,
        "region": plan.region,
        "zone": zone,
    }
    return ZoneMachines(
        zone=zone,
        provider_spec=spec,
        node_template=template,
        node_labels={"topology.kubernetes.io/zone": zone},
    )
