"""Externally managed objects are left alone."""

import asyncio

import pytest

from pergola.api.cluster_api import CLUSTER_NAME, MANAGED_BY, PAUSED
from pergola.api.objects import JsonObject, Key, labels_of, owner_references_of, uid_of
from pergola.externally_managed.contract import (
    FailureDomain,
    done,
    endpoint_of,
    failure_domains_of,
    is_provisioned,
    render_failure_domains,
)
from pergola.testing.capi_contract.site import HOLD, TOUCHED, Site

pytestmark = pytest.mark.asyncio

ENDPOINT: JsonObject = {"host": "api.contract.example.org", "port": 6443}
DOMAINS = [FailureDomain("contract-a"), FailureDomain("contract-b", control_plane=False)]
_RESYNCS = 3


@pytest.mark.parametrize("value", ["", "x", "false"], ids=["empty", "x", "false"])
async def test_nothing_is_written_after_creation(capi_site: Site, value: str) -> None:
    """Nothing is written after creation, whatever the annotation's value."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key, value)
        await witness.stays_untouched(capi_site.settle_seconds)


async def test_nothing_is_written_after_updates(capi_site: Site) -> None:
    """Nothing is written after updates of metadata, spec and status."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key)
        await capi_site.annotate(key, TOUCHED, "1")
        await fill(capi_site, key)
        await witness.stays_untouched(capi_site.settle_seconds)


async def test_nothing_is_written_after_the_value_changes(capi_site: Site) -> None:
    """Nothing is written after the annotation's value changes."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key, "one")
        await capi_site.annotate(key, MANAGED_BY, "another")
        await capi_site.annotate(key, MANAGED_BY, "")
        await witness.stays_untouched(capi_site.settle_seconds)


async def test_nothing_is_written_after_events_of_the_cluster(capi_site: Site) -> None:
    """Nothing is written after events of its Cluster, such as unpausing."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key)
        for paused in (True, False):
            await capi_site.patch_cluster(key, {"spec": {"paused": paused}})
            await witness.stays_untouched(capi_site.settle_seconds)


async def test_paused_objects_get_no_condition(capi_site: Site) -> None:
    """Nothing is written while it is paused, not even a condition."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key, annotations={PAUSED: ""})
        await witness.stays_untouched(capi_site.settle_seconds)


async def test_nothing_is_written_by_resyncs(capi_site: Site) -> None:
    """Nothing is written in three periods of resync."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key)
        periods = _RESYNCS * capi_site.subject.resync_seconds
        await witness.stays_untouched(periods + capi_site.settle_seconds)


async def test_nothing_is_written_after_it_was_taken_over(capi_site: Site) -> None:
    """Nothing is written after a managed object got the annotation."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_managed(key)
        await witness.until_foreign()
        known = await witness.rests(capi_site.settle_seconds)
        await capi_site.annotate(key, MANAGED_BY, "contract")
        await capi_site.annotate(key, TOUCHED, "1")
        await witness.stays_untouched(capi_site.settle_seconds, since=known)


async def test_a_deleted_object_with_another_finalizer_stays_untouched(capi_site: Site) -> None:
    """Nothing is written while it is being deleted, and foreign finalizers stay."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key, finalizers=[HOLD])
        known = await witness.rests(capi_site.settle_seconds)  # other cases cover these
        await capi_site.delete(key)
        await witness.stays_untouched(capi_site.settle_seconds, since=known)
        await capi_site.patch(key, {"metadata": {"finalizers": None}})
        await witness.until_gone()


async def test_a_deleted_object_goes_without_the_provider(capi_site: Site) -> None:
    """It goes at once when it is deleted."""
    key = capi_site.new_key()
    async with capi_site.witness(key) as witness:
        await capi_site.create_external(key)
        await witness.stays_untouched(capi_site.settle_seconds)
        await capi_site.delete(key)
        await witness.until_gone()


async def test_the_links_of_an_external_object_are_kept(capi_site: Site) -> None:
    """It keeps core's owner reference and label."""
    key = capi_site.new_key()
    await capi_site.create_external(key)
    await fill(capi_site, key)
    await asyncio.sleep(capi_site.settle_seconds)
    obj = await capi_site.get(key)
    cluster = await capi_site.client.get(capi_site.kinds.cluster, key)
    if uid_of(cluster) not in [owner.get("uid") for owner in owner_references_of(obj)]:
        pytest.fail("the owner reference to the Cluster was removed", pytrace=False)
    if labels_of(obj).get(CLUSTER_NAME) != key.name:
        pytest.fail(f"the label {CLUSTER_NAME} was removed", pytrace=False)


async def test_what_the_external_manager_fills_in_is_kept(capi_site: Site) -> None:
    """Endpoint, failure domains and readiness are kept as its manager writes them."""
    key = capi_site.new_key()
    await capi_site.create_external(key)
    await fill(capi_site, key)
    await asyncio.sleep(capi_site.settle_seconds)
    obj, version = await capi_site.get(key), capi_site.kinds.contract.version
    lost = [
        name
        for name, is_there in (
            ("spec.controlPlaneEndpoint", endpoint_of(obj).is_valid),
            ("status.failureDomains", failure_domains_of(obj, version) == DOMAINS),
            (f"readiness of contract {version}", is_provisioned(obj, version)),
        )
        if not is_there
    ]
    if lost:
        pytest.fail(
            f"{', '.join(lost)} did not stay as written: does the CRD have the fields of the "
            f"contract {version}?",
            pytrace=False,
        )


async def fill(site: Site, key: Key) -> None:
    """Write the fields of an external manager, in the form of the contract."""
    if not endpoint_of(await site.get(key)).is_valid:
        await site.patch(key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
    version = site.kinds.contract.version
    domains = render_failure_domains(DOMAINS, version)
    await site.write_status(key, {**done(version), "failureDomains": domains})
