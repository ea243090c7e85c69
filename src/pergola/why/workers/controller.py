"""Whether machine-controller-manager runs, which creates and deletes machines."""

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import Identity, Key
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster
from pergola.extensions.workers.deployments import current_replicas
from pergola.extensions.workers.reconcile import CONTROLLER
from pergola.why.answer import Statement, Topic
from pergola.why.health import unhealthy
from pergola.why.health.advice import NO_REPLICAS
from pergola.why.reading import Reader


async def controller_problem(reader: Reader, namespace: str) -> Statement | None:
    """Return why no machine is created or deleted in a namespace; None if nothing is wrong."""
    key = Key(namespace, CONTROLLER)
    if await reader.is_missing(DEPLOYMENT, key):
        return Statement(
            topic=Topic.PROBLEM,
            subject=f"Deployment {key}",
            text="it does not exist, so no machine is created or deleted",
            advice="have gardenlet reconcile the Shoot, which deploys it",
        )
    deployment = await reader.find(DEPLOYMENT, key)
    if deployment is None:
        return None
    if current_replicas(deployment):
        return await unhealthy(Identity(DEPLOYMENT, key), reader)
    advice = NO_REPLICAS.format(namespace=namespace, name=CONTROLLER)
    if await is_hibernated(reader, namespace):
        advice = "wake up the Shoot: it is hibernated"
    return Statement(
        topic=Topic.PROBLEM,
        subject=f"Deployment {key}",
        text="it has no replicas, so no machine is created or deleted",
        advice=advice,
    )


async def is_hibernated(reader: Reader, namespace: str) -> bool:
    """Return whether the Shoot with its machines in a namespace should be hibernated."""
    found = await reader.find(CLUSTER, Key("", namespace))
    try:
        cluster = None if found is None else Cluster.from_object(found)
    except MalformedCluster:
        return False
    return cluster is not None and cluster.shoot is not None and cluster.shoot.hibernation_enabled
