"""The stand-in for etcd-druid deletes what it made, whatever goes last."""

from pergola.api.kinds import SERVICE, STATEFUL_SET
from pergola.api.objects import Key
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.kube.client import Client
from pergola.sandbox.simulated.etcd_druid import ETCD, druid_unit
from pergola.testing.crds import install_garden_crds
from pergola.testing.waiting import running, until, until_gone
from tests.support.garden import landscape


async def test_an_etcd_is_gone_although_its_service_outlasts_its_pods(
    cluster_client: Client, namespace: str
) -> None:
    client = cluster_client
    await install_garden_crds(client, "etcd")
    objects = ETCDS.objects(landscape()).direct
    etcd = next(obj for obj in objects if obj["kind"] == ETCD.kind)
    etcd["metadata"]["namespace"] = namespace
    etcd["spec"]["replicas"] = 0
    key, service = Key.of(etcd), Key(namespace, f"{Key.of(etcd).name}-client")
    async with running(druid_unit(client, namespace)):
        await client.create(etcd)
        await until(client, STATEFUL_SET, key, lambda _: True)
        kept = {"metadata": {"finalizers": ["example.org/kept"]}}
        await client.patch(SERVICE, service, kept)
        await client.delete(ETCD, key)
        await until_gone(client, STATEFUL_SET, key)
        await client.patch(SERVICE, service, {"metadata": {"finalizers": None}})
        await until_gone(client, ETCD, key)
