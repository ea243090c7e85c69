"""A shared cluster shows people what `kubectl` would show them, and nothing else."""

import base64
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli.dashboard.answers import answers
from pergola.dashboard import Lifetimes
from pergola.dashboard.state.cards import card_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.manifests.rbac import rule
from pergola.testing.crds import install_extension_crds
from tests.support.dashboard_cluster import ClusterSite, cluster_site
from tests.support.dashboard_objects import bad, create_managed_resource, managed_resource
from tests.support.dashboard_site import DashboardSite, Message
from tests.support.service_accounts import until_allowed

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

RESOURCES: Final = rule("resources.gardener.cloud", ["managedresources"], ["get", "list"])
EVENTS: Final = rule("", ["events"], ["list"])
EVERYTHING: Final = rule("*", ["*"], ["get", "list"])
PROBLEM: Final = "Deployment hidden has no replicas"
MANY: Final = 5_000
VALUE: Final = "correct horse battery staple"


def event(namespace: str) -> JsonObject:
    return {
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
        "message": PROBLEM,
    }


async def populate(site: ClusterSite, *namespaces: str) -> None:
    """Create a ManagedResource and an Event in each, and wait until the dashboard has them."""
    for namespace in namespaces:
        await create_managed_resource(site.admin, Key(namespace, "web"), bad(PROBLEM))
        await site.admin.create(event(namespace))
    token = await site.person("observer")
    await site.grant("observer", "", EVERYTHING)
    async with site.signed_in(token) as browser:
        for namespace in namespaces:
            await browser.item(partial(_is, namespace, "web"))
            await browser.item(partial(_is, namespace, "Broken"))


def _is(namespace: str, name: str, entry: JsonObject) -> bool:
    """Return whether an entry is the card of a broken object, or an Event about one."""
    found = entry["title"] if "about" in entry else entry["name"]
    return bool(entry["namespace"] == namespace and found == name and entry["state"] == "trouble")


def subject(namespace: str, name: str = "web") -> dict[str, str]:
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "namespace": namespace,
        "name": name,
    }


async def everything(messages: AsyncIterator[Message], *names: str) -> list[JsonObject]:
    """Return the entries of the first complete message with exactly these namespaces."""
    async for message in messages:
        if message.name == "everything":
            items: list[JsonObject] = message.data["items"]
            if {each["namespace"] for each in items} == set(names):
                return items
    raise AssertionError("the stream ended")


async def test_a_person_with_permissions_in_one_namespace_sees_only_that(
    shared: ClusterSite, namespace: str, other_namespace: str
) -> None:
    await populate(shared, namespace, other_namespace)
    token = await shared.person("ann")
    await shared.grant("ann", namespace, RESOURCES, EVENTS)

    async with shared.signed_in(token) as browser:
        async with browser.stream() as messages:
            items = await everything(messages, namespace)
            assert {(each["kind"], each.get("title", "")) for each in items} >= {
                (MANAGED_RESOURCE.kind, "Broken"),
                (MANAGED_RESOURCE.kind, ""),
            }
        assert (await browser.json("/api/object", **subject(namespace)))["state"] == "trouble"
        assert PROBLEM in (await browser.get("/api/why", **subject(namespace)))[1]
        await check_hidden(browser, other_namespace)


async def check_hidden(browser: DashboardSite, namespace: str) -> None:
    """Check that no request reveals anything about a namespace."""
    status, text = await browser.get("/api/object", **subject(namespace))
    assert status == 403
    assert PROBLEM not in text
    _, text = await browser.get("/api/why", **subject(namespace))
    assert "you may not read" in text
    assert PROBLEM not in text
    infrastructure = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "namespace": namespace,
        "name": "web",
    }
    _, text = await browser.get("/api/flow", **infrastructure)
    assert "you may not list" in text
    status, _ = await browser.get("/api/network.svg", **infrastructure)
    assert status in (403, 404)


async def test_a_person_without_permissions_sees_nothing(
    shared: ClusterSite, namespace: str
) -> None:
    await populate(shared, namespace)
    token = await shared.person("ann")
    async with shared.signed_in(token) as browser, browser.stream() as messages:
        assert await everything(messages) == []
        await check_hidden(browser, namespace)


async def test_an_event_is_shown_only_to_those_who_may_list_events(
    shared: ClusterSite, namespace: str
) -> None:
    await populate(shared, namespace)
    for name, granted in (("ann", EVENTS), ("bob", RESOURCES)):
        token = await shared.person(name)
        await shared.grant(name, namespace, granted)
        async with shared.signed_in(token) as browser, browser.stream() as messages:
            items = await everything(messages, namespace)
            assert ("Broken" in {each.get("title") for each in items}) == (granted is EVENTS)
            assert any("about" not in each for each in items) == (granted is RESOURCES)


async def test_why_reads_nothing_that_the_person_may_not_read(
    shared: ClusterSite, namespace: str
) -> None:
    encoded = base64.b64encode(f"kind: ConfigMap # {VALUE}".encode()).decode()
    metadata = {"namespace": namespace, "name": "manifests"}
    await shared.admin.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a.yaml": encoded}}
    )
    resource = managed_resource(Key(namespace, "web"))
    resource["spec"]["secretRefs"] = [{"name": "manifests"}]
    await shared.admin.create(resource)
    token = await shared.person("ann")
    await shared.grant("ann", namespace, RESOURCES)

    async with shared.signed_in(token) as browser, browser.stream() as messages:
        await everything(messages, namespace)
        _, text = await browser.get("/api/why", **subject(namespace))
        assert "ManagedResource" in text
        assert VALUE not in text
        secret = {"apiVersion": "v1", "kind": "Secret", **metadata}
        for path in ("/api/object", "/api/why"):
            _, text = await browser.get(path, **secret)
            assert VALUE not in text
            assert encoded not in text
            assert "a.yaml" not in text


async def test_granted_and_revoked_permissions_change_an_open_page(
    shared: ClusterSite, namespace: str, other_namespace: str
) -> None:
    await populate(shared, namespace, other_namespace)
    token = await shared.person("ann")
    await shared.grant("ann", namespace, RESOURCES)
    async with shared.signed_in(token) as browser, browser.stream() as messages:
        await everything(messages, namespace)
        given = await shared.grant("ann", other_namespace, RESOURCES)
        await everything(messages, namespace, other_namespace)
        for obj in given:
            await shared.admin.delete(GroupVersionKind.of(obj), Key.of(obj))
        await everything(messages, namespace)


async def test_thousands_of_objects_do_not_cost_thousands_of_requests(
    cluster_client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    await install_extension_crds(cluster_client)
    asked: Counter[str] = Counter()

    def observe(method: str, _code: str, _host: str, _seconds: float) -> None:
        asked[method] += 1

    async with cluster_site(
        cluster_client,
        load(kubeconfig),
        namespace,
        tmp_path,
        answers(),
        lifetimes=Lifetimes(),
        observe=observe,
    ) as site:
        for number in range(MANY):
            obj = managed_resource(Key(namespace, f"resource-{number:04}"))
            site.board.feed.put(card_of(MANAGED_RESOURCE, obj))
        token = await site.person("ann")
        await site.grant("ann", namespace, RESOURCES)
        async with site.client(token) as client:
            await until_allowed(client, MANAGED_RESOURCE, namespace)
        async with site.signed_in(token) as browser, browser.stream() as messages:
            assert len(await everything(messages, namespace)) >= MANY
        assert asked["POST"] < MANY
