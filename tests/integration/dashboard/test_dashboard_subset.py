"""Whatever the roles, the page shows a subset of what the API server lists for the same user."""

import random
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_id
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.manifests.rbac import rule
from tests.support.dashboard_cluster import ClusterSite
from tests.support.dashboard_objects import managed_resource
from tests.support.dashboard_site import Message

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

KINDS: Final = (MANAGED_RESOURCE, NETWORK, EVENT)
RULES: Final = (
    ("resources.gardener.cloud", "managedresources"),
    ("extensions.gardener.cloud", "networks"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("*", "*"),
)
VERBS: Final = (["list"], ["get"], ["watch"], ["get", "list", "watch"], ["*"])


def random_rules(choose: random.Random) -> Iterator[JsonObject]:
    for _ in range(choose.randint(0, 2)):
        group, plural = choose.choice(RULES)
        names = ["web"] if choose.random() < 0.25 else []
        yield rule(group, [plural], choose.choice(VERBS), names)


@pytest.mark.parametrize("seed", range(6))
async def test_the_page_shows_a_subset_of_what_the_api_server_lists(
    shared: ClusterSite, namespace: str, other_namespace: str, seed: int
) -> None:
    namespaces = (namespace, other_namespace)
    for each in namespaces:
        await populate(shared.admin, each)
    choose = random.Random(seed)  # noqa: S311 - the same roles in every run
    token = await shared.person("ann")
    granted: dict[str, list[JsonObject]] = {}
    for place in (*namespaces, *([""] if choose.random() < 0.3 else [])):
        granted[place] = list(random_rules(choose))
        if granted[place]:
            await shared.grant("ann", place, *granted[place])

    async with (
        shared.client(token) as client,
        shared.signed_in(token) as browser,
        browser.stream() as messages,
    ):
        async for shown in shown_in(messages, namespaces):
            # The roles reach the authorizer one by one, and no role is removed.
            listed = await listed_by(client, namespaces)
            assert shown <= listed
            expected = await listed_by(shared.admin, namespaces, granted)
            if shown == listed == expected and await has_all(shared, namespaces):
                return
    raise AssertionError("the stream ended")


async def populate(client: Client, namespace: str) -> None:
    await client.create(managed_resource(Key(namespace, "web")))
    await client.create(
        {
            "apiVersion": NETWORK.api_version,
            "kind": NETWORK.kind,
            "metadata": {"namespace": namespace, "name": "web"},
            "spec": {"type": "none", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"},
        }
    )
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": "web"}
    metadata = {"namespace": namespace, "name": "web"}
    await client.create(
        {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about}
    )


async def shown_in(
    messages: AsyncIterator[Message], namespaces: tuple[str, ...]
) -> AsyncIterator[set[str]]:
    """Yield what a page shows of the namespaces, without conditions, after each message."""
    shown: set[str] = set()
    async for message in messages:
        if message.name == "everything":
            shown.clear()
        shown -= set(message.data.get("gone", ()))
        shown |= {
            each["id"]
            for each in message.data.get("items", ())
            if each["namespace"] in namespaces and not each["id"].startswith("condition/")
        }
        yield shown


async def listed_by(
    client: Client,
    namespaces: tuple[str, ...],
    granted: dict[str, list[JsonObject]] | None = None,
) -> set[str]:
    """Return what the API server lists of the namespaces, as the page names it.

    Args:
        granted: Rules by namespace; kinds that they do not let anyone list are left out.
    """
    found: set[str] = set()
    for namespace in namespaces:
        for kind in (*KINDS, GroupVersionKind("", "v1", "Event")):
            if granted is not None and not lets_list(granted, kind, namespace):
                continue
            try:
                objects = await client.list(kind, namespace)
            except Forbidden:
                continue
            found |= {_id(kind, namespace, obj) for obj in objects}
    return found


def lets_list(granted: dict[str, list[JsonObject]], kind: GroupVersionKind, namespace: str) -> bool:
    """Return whether rules let their subject list a kind in a namespace."""
    return any(
        each["apiGroups"][0] in ("*", kind.group)
        and each["resources"][0] in ("*", f"{kind.kind.lower()}s")
        and {"list", "*"} & set(each["verbs"])
        and "resourceNames" not in each
        for each in (*granted.get(namespace, ()), *granted.get("", ()))
    )


def _id(kind: GroupVersionKind, namespace: str, obj: JsonObject) -> str:
    if kind.kind == EVENT.kind:
        return f"event/{uid_of(obj)}"
    return card_id(kind, Key(namespace, name_of(obj)))


async def has_all(site: ClusterSite, namespaces: tuple[str, ...]) -> bool:
    """Return whether the dashboard has all objects of the namespaces."""
    known = {each.id for each in site.board.feed.items()}
    return await listed_by(site.admin, namespaces) <= known
