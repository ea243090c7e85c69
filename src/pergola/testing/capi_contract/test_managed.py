"""The provider is at work."""

import pytest

from pergola.api.cluster_api import CLUSTER_NAME, MANAGED_BY
from pergola.api.objects import labels_of, owner_references_of, uid_of
from pergola.testing.capi_contract.site import Site

pytestmark = pytest.mark.asyncio


async def test_an_object_without_the_annotation_is_reconciled(capi_site: Site) -> None:
    """An object without the annotation is reconciled."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_managed(key)
        await witness.until_foreign()


async def test_a_label_of_that_name_does_not_count(capi_site: Site) -> None:
    """An object with a label of that name is reconciled, too."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_managed(key, labels={MANAGED_BY: "somebody"})
        await witness.until_foreign()


async def test_the_links_of_a_managed_object_are_kept(capi_site: Site) -> None:
    """It keeps core's owner reference and label through the provider's writes."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_managed(key)
        await witness.until_foreign()
        await witness.rests(capi_site.settle_seconds)
    obj = await capi_site.get(key)
    cluster = await capi_site.client.get(capi_site.kinds.cluster, key)
    if uid_of(cluster) not in [owner.get("uid") for owner in owner_references_of(obj)]:
        pytest.fail("the provider removed the owner reference to the Cluster", pytrace=False)
    if labels_of(obj).get(CLUSTER_NAME) != key.name:
        pytest.fail(f"the provider removed the label {CLUSTER_NAME}", pytrace=False)
