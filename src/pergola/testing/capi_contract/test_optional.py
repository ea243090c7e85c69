"""Optional features."""

from string import Template

import pytest

from pergola.api.cluster_api import READY_BY_HAND
from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of
from pergola.externally_managed.contract import endpoint_of, is_provisioned
from pergola.testing.capi_contract.site import Site
from pergola.testing.capi_contract.subject import objects
from pergola.testing.capi_contract.test_external import ENDPOINT, fill

pytestmark = pytest.mark.asyncio


async def test_it_becomes_ready_by_hand(capi_site: Site) -> None:
    """An object that is declared ready by hand becomes ready."""
    if not capi_site.subject.ready_by_hand:
        pytest.skip("requires --capi-ready-by-hand")
    key, version = capi_site.new_key(), capi_site.kinds.contract.version
    async with capi_site.witness(key) as witness:
        obj = await capi_site.create_external(key)
        if not endpoint_of(obj).is_valid:
            await capi_site.patch(key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
        await capi_site.annotate(key, READY_BY_HAND, "true")
        await witness.until(
            lambda obj: is_provisioned(obj, version),
            f'the annotation {READY_BY_HAND}="true" did not make it ready',
        )


async def test_machines_are_reconciled_all_the_same(capi_site: Site) -> None:
    """Machines of a Cluster with external infrastructure are reconciled."""
    template = capi_site.subject.machines
    if template is None:
        pytest.skip("requires --capi-machine-manifest")
    key = capi_site.new_key()
    await capi_site.create_external(key)
    await fill(capi_site, key)
    await provision(capi_site, key)
    words = {"CLUSTER_NAME": key.name, "NAMESPACE": key.namespace}
    for obj in objects(Template(template).safe_substitute(words), "the machine manifest"):
        gvk = GroupVersionKind.of(obj)
        async with capi_site.witness(Key(key.namespace, name_of(obj)), gvk) as witness:
            await capi_site.create_further(obj)
            if gvk.group == capi_site.subject.kind.group:
                await witness.until_foreign()


async def provision(site: Site, key: Key) -> None:
    """Write the Cluster's status as core does when its infrastructure is ready."""
    await site.patch_cluster(key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
    status: JsonObject = {"initialization": {"infrastructureProvisioned": True}}
    if site.kinds.cluster.version == "v1beta1":
        status = {"infrastructureReady": True}
    await site.patch_cluster(key, {"status": status}, subresource="status")
