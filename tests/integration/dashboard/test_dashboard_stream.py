"""The stream sends existing objects, changes, and whatever a page missed."""

from datetime import UTC, datetime

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_id
from pergola.kube.client import Client
from tests.support.dashboard_objects import (
    APPLIED,
    HEALTHY,
    bad,
    create_managed_resource,
    good,
    managed_resource,
    report,
)
from tests.support.dashboard_site import DashboardSite, item


async def test_a_broken_object_is_listed_with_its_problem_and_since_when(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "web")
    await create_managed_resource(cluster_client, key, bad("Deployment web has no replicas"))
    mine = card_id(MANAGED_RESOURCE, key)
    card = await site.item(lambda it: it["id"] == mine and it["state"] == "trouble")
    assert card["problem"] == "Deployment web has no replicas"
    since = datetime.fromisoformat(card["since"])
    assert 299 <= (datetime.now(UTC) - since).total_seconds() < 1000
    assert [APPLIED, "True", "healthy"] in card["conditions"]


async def test_a_change_arrives_at_an_open_page(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "web")
    await create_managed_resource(cluster_client, key, bad("it is broken"))
    async with site.stream() as messages:
        mine = card_id(MANAGED_RESOURCE, key)
        await item(messages, lambda it: it["id"] == mine and it["state"] == "trouble")
        await report(cluster_client, key, good())
        repaired = await item(messages, lambda it: it["id"] == mine and it["state"] == "healthy")
        assert repaired["problem"] == ""
        await cluster_client.delete(MANAGED_RESOURCE, key)
        async for message in messages:
            if mine in message.data.get("gone", ()):
                return
    raise AssertionError("the stream ended")


async def test_a_page_that_reconnects_gets_only_the_differences(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    await site.board.synced()
    first, second = Key(namespace, "first"), Key(namespace, "second")
    await create_managed_resource(cluster_client, first, good())
    async with site.stream() as messages:
        position = ""
        async for message in messages:
            position = message.id or position
            found = {each["id"]: each for each in message.data.get("items", ())}
            if found.get(card_id(MANAGED_RESOURCE, first), {}).get("state") == "healthy":
                break
    await create_managed_resource(cluster_client, second, good())
    async with site.stream(position) as messages:
        async for message in messages:
            assert message.name in ("changes", "status")
            names = [each["id"] for each in message.data.get("items", ())]
            assert card_id(MANAGED_RESOURCE, first) not in names
            if card_id(MANAGED_RESOURCE, second) in names:
                return
    raise AssertionError("the stream ended")


async def test_a_page_from_another_process_starts_over(site: DashboardSite) -> None:
    await site.board.synced()
    async with site.stream("00000000.7") as messages:
        message = await anext(messages)
    assert message.name == "everything"


async def test_events_and_changed_conditions_are_on_the_timeline(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "web")
    await cluster_client.create(managed_resource(key))
    mine = card_id(MANAGED_RESOURCE, key)
    async with site.stream() as messages:
        await item(messages, lambda it: it["id"] == mine)
        await report(cluster_client, key, bad("it is broken", minutes=1))
        changed = await item(
            messages, lambda it: it.get("about") == mine and HEALTHY in it["title"]
        )
        assert (changed["title"], changed["text"]) == (f"{HEALTHY} is False", "it is broken")
        await cluster_client.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"namespace": namespace, "name": "web.1"},
                "involvedObject": {
                    "apiVersion": MANAGED_RESOURCE.api_version,
                    "kind": MANAGED_RESOURCE.kind,
                    "namespace": namespace,
                    "name": "web",
                },
                "type": "Warning",
                "reason": "Broken",
                "message": "a pod does not start",
                "lastTimestamp": changed["time"],
                "count": 3,
            }
        )
        event = await item(messages, lambda it: it.get("title") == "Broken")
    assert event["about"] == mine
    assert (event["state"], event["text"], event["count"]) == ("trouble", "a pod does not start", 3)
