"""The labels of the token invalidator on a real API server, with real tokens: spec 11 §2.5.

Tests of the webhook cover its effect on the tokens.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pergola.api.kinds import CLUSTER_ROLE, POD, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at, name_of
from pergola.api.resource_manager_config import configuration_from
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.token_invalidator import Settings, token_invalidator
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, settled, until, until_gone
from pergola.testing.world import RecordingClient
from tests.support.service_accounts import service_account_config, until_allowed

ROOT = Path(__file__).parents[3]
ROLES = ROOT / "charts" / "resource-manager" / "rbac" / "token-invalidator.yaml"
EXAMPLE = ROOT / "examples" / "token-invalidator"
ACCOUNT = "kubernetes.io/service-account.name"
PURPOSE = "resources.gardener.cloud/purpose"
CONSIDER = "token-invalidator.resources.gardener.cloud/consider"
SKIP = "token-invalidator.resources.gardener.cloud/skip"
MARKED = {PURPOSE: "token-invalidator"}
CONSIDERED = MARKED | {CONSIDER: "true"}


class Place:
    """A namespace with a ServiceAccount `robot` and its token Secret `robot-token`."""

    def __init__(
        self, config: ClusterConfig, client: Client, recorder: RecordingClient, namespace: str
    ) -> None:
        self.config = config
        self.client = client
        self.recorder = recorder
        self.namespace = namespace
        self.secret = self.key("robot-token")

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    def unit(self, client: Client | None = None) -> Unit:
        settings = Settings(workers=2, namespaces=[self.namespace])
        return token_invalidator(client or self.recorder, settings, metrics=Metrics())

    async def add_account(
        self, *, automount: bool | None = False, labels: dict[str, str] | None = None
    ) -> None:
        account: JsonObject = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "robot", "namespace": self.namespace, "labels": labels or {}},
        }
        if automount is not None:
            account["automountServiceAccountToken"] = automount
        await self.client.create(account)

    async def add_secret(self, name: str = "robot-token", account: str = "robot") -> JsonObject:
        """Create a token Secret, and return it once it contains a token."""
        metadata = {"name": name, "namespace": self.namespace, "annotations": {ACCOUNT: account}}
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/service-account-token",
                "metadata": metadata,
            }
        )
        return await until(self.client, SECRET, self.key(name), has_token)

    async def add_pod(self, uses: JsonObject, name: str = "user") -> None:
        """Create an unschedulable pod, which uses the objects in its spec."""
        container = {"name": "c", "image": "registry.example/c:1", **uses.get("container", {})}
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "schedulerName": "nobody",
                    "containers": [container],
                    "volumes": uses.get("volumes", []),
                },
            }
        )

    async def until_labelled(self, labels: dict[str, str], name: str = "robot-token") -> JsonObject:
        return await until(
            self.client, SECRET, self.key(name), lambda obj: labels_of(obj) == labels
        )

    async def patch(self, gvk: GroupVersionKind, name: str, body: JsonObject) -> None:
        await self.client.patch(gvk, self.key(name), body)


def has_token(secret: JsonObject) -> bool:
    return bool(map_at(secret, "data").get("token"))


def patches(*names: str) -> list[str]:
    return [f"patch Secret {name}" for name in names]


@pytest.fixture
async def place(kubeconfig: Path, cluster_client: Client, namespace: str) -> AsyncIterator[Place]:
    config = load(kubeconfig)
    async with RecordingClient.connect(config) as recorder:
        yield Place(config, cluster_client, recorder, namespace)


MOUNTED: JsonObject = {
    "volumes": [{"name": "v", "secret": {"secretName": "robot-token"}}],
}
PROJECTED: JsonObject = {
    "volumes": [
        {"name": "v", "projected": {"sources": [{"secret": {"name": "robot-token"}}]}},
    ]
}
IN_ENV: JsonObject = {
    "container": {
        "env": [
            {
                "name": "TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "robot-token", "key": "token"}},
            }
        ]
    }
}
ALL_IN_ENV: JsonObject = {"container": {"envFrom": [{"secretRef": {"name": "robot-token"}}]}}


# The lines of spec 11 §2.5


async def test_an_unused_token_is_considered(place: Place) -> None:
    await place.add_account()
    before = await place.add_secret()
    await place.add_pod({"volumes": [{"name": "v", "secret": {"secretName": "another"}}]})
    async with running(unit := place.unit()):
        after = await place.until_labelled(CONSIDERED)
        await settled(unit, place.client)
    assert place.recorder.taken() == patches(str(place.secret))
    assert after["data"] == before["data"]


@pytest.mark.parametrize("automount", [None, True])
async def test_a_token_of_an_automounting_account_is_only_marked(
    place: Place, automount: bool | None
) -> None:
    await place.add_account(automount=automount)
    await place.add_secret()
    async with running(unit := place.unit()):
        await place.until_labelled(MARKED)
        await settled(unit, place.client)
        assert place.recorder.taken() == patches(str(place.secret))


@pytest.mark.parametrize("automount", [None, True])
async def test_an_account_that_automounts_again_gets_its_token_back(
    place: Place, automount: bool | None
) -> None:
    await place.add_account()
    await place.add_secret()
    await place.add_secret("second-token")
    names = ("robot-token", "second-token")
    async with running(place.unit()):
        for choice, labels in ((False, CONSIDERED), (automount, MARKED), (False, CONSIDERED)):
            await place.patch(SERVICE_ACCOUNT, "robot", {"automountServiceAccountToken": choice})
            for name in names:
                await place.until_labelled(labels, name)
    # Only the annotations of the Secrets connect them to the account.
    assert "secrets" not in await place.client.get(SERVICE_ACCOUNT, place.key("robot"))


async def test_a_recreated_secret_is_considered_again(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    async with running(place.unit()):
        await place.until_labelled(CONSIDERED)
        await place.client.delete(SECRET, place.secret)
        await until_gone(place.client, SECRET, place.secret)
        await place.add_secret()
        await place.until_labelled(CONSIDERED)


async def test_removed_labels_are_restored(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    async with running(place.unit()):
        await place.until_labelled(CONSIDERED)
        await place.patch(SECRET, "robot-token", {"metadata": {"labels": None}})
        await place.until_labelled(CONSIDERED)


@pytest.mark.parametrize("value", ["true", "", "no"])
async def test_an_account_that_skips_invalidation_gets_its_token_back(
    place: Place, value: str
) -> None:
    await place.add_account()
    await place.add_secret()
    async with running(place.unit()):
        await place.until_labelled(CONSIDERED)
        await place.patch(SERVICE_ACCOUNT, "robot", {"metadata": {"labels": {SKIP: value}}})
        await place.until_labelled(MARKED)
        await place.patch(SERVICE_ACCOUNT, "robot", {"metadata": {"labels": {SKIP: None}}})
        await place.until_labelled(CONSIDERED)


@pytest.mark.parametrize("uses", [MOUNTED, PROJECTED, IN_ENV, ALL_IN_ENV])
async def test_a_token_in_use_is_considered_once_its_pod_is_deleted(
    place: Place, uses: JsonObject
) -> None:
    await place.add_account()
    await place.add_secret()
    await place.add_pod(uses)
    async with running(unit := place.unit()):
        await place.until_labelled(MARKED)
        await settled(unit, place.client)
        assert place.recorder.taken() == patches(str(place.secret))
        await place.client.delete(POD, place.key("user"))
        await place.until_labelled(CONSIDERED)


async def test_a_later_pod_does_not_restore_a_token(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    async with running(unit := place.unit()):
        await place.until_labelled(CONSIDERED)
        place.recorder.taken()
        await place.add_pod(MOUNTED)
        await place.patch(SECRET, "robot-token", {"metadata": {"annotations": {"a": "b"}}})
        await settled(unit, place.client)
    assert place.recorder.taken() == []


async def test_a_secret_without_an_account_is_left_alone(place: Place) -> None:
    await place.add_account()
    metadata = {"name": "plain", "namespace": place.namespace}
    plain = await place.client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"token": "YQ=="}}
    )
    async with running(unit := place.unit()):
        await place.patch(SECRET, "plain", {"data": {"other": "Yg=="}})
        await settled(unit, place.client)
    assert place.recorder.taken() == []
    after = await place.client.get(SECRET, place.key("plain"))
    assert labels_of(after) == {}
    assert after["data"] == plain["data"] | {"other": "Yg=="}


# Beyond these lines


async def test_an_existing_purpose_is_kept(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    await place.patch(SECRET, "robot-token", {"metadata": {"labels": {PURPOSE: "mine"}}})
    async with running(place.unit()):
        await place.until_labelled({PURPOSE: "mine", CONSIDER: "true"})


async def test_a_secret_whose_account_is_missing_waits_for_it(place: Place) -> None:
    metadata = {"name": "robot-token", "annotations": {ACCOUNT: "robot"}}
    metadata["namespace"] = place.namespace
    # Another type, because the token controller deletes token Secrets without an account.
    await place.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    async with running(unit := place.unit()):
        await settled(unit, place.client)
        assert place.recorder.taken() == []
        await place.add_account()
        await place.until_labelled(CONSIDERED)


async def test_other_namespaces_are_left_alone(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    elsewhere = token_invalidator(
        place.recorder, Settings(namespaces=["elsewhere"]), metrics=Metrics()
    )
    async with running(elsewhere):
        await settled(elsewhere, place.client)
    assert place.recorder.taken() == []


async def test_nothing_is_written_after_a_restart(place: Place) -> None:
    await place.add_account()
    await place.add_secret()
    async with running(place.unit()):
        await place.until_labelled(CONSIDERED)
    place.recorder.taken()
    async with running(unit := place.unit()):
        await settled(unit, place.client)
    assert place.recorder.taken() == []


async def test_a_concurrent_edit_is_not_overwritten(place: Place) -> None:
    """The first patch is based on an outdated state, and is retried."""
    await place.add_account()
    await place.add_secret()

    class Slow(RecordingClient):
        edited = False

        async def patch(
            self,
            gvk: GroupVersionKind,
            key: Key,
            body: JsonObject | Sequence[JsonObject],
            *,
            subresource: str = "",
            manager: str = "",
        ) -> JsonObject:
            if not self.edited:
                self.edited = True
                await place.patch(SECRET, key.name, {"metadata": {"labels": {CONSIDER: "mine"}}})
            return await super().patch(gvk, key, body, subresource=subresource, manager=manager)

    async with Slow.connect(place.config) as slow:
        async with running(unit := place.unit(slow)):
            await place.until_labelled(MARKED | {CONSIDER: "mine"})
            await settled(unit, place.client)
        assert slow.taken() == patches(str(place.secret), str(place.secret))


# Permissions


async def grant(place: Place) -> JsonObject:
    """Grant the chart's permissions, in the namespace only, to its ServiceAccount `default`."""
    (document,) = parse_documents(ROLES.read_text())
    assert isinstance(document.value, dict)
    name = f"{place.namespace}:{name_of(document.value)}"
    role = await place.client.create({**document.value, "metadata": {"name": name}})
    await place.client.create(
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": "RoleBinding",
            "metadata": {"name": "invalidator", "namespace": place.namespace},
            "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": "default", "namespace": place.namespace}
            ],
        }
    )
    return role


async def test_the_permissions_of_the_chart_are_sufficient_and_minimal(place: Place) -> None:
    role = await grant(place)
    refused: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        refused[method] += code == "403"

    config = await service_account_config(place.config, place.namespace)
    async with Client.connect(config, observe=observe) as restricted:
        await until_allowed(restricted, SECRET, place.namespace)
        refused.clear()
        await place.add_account()
        await place.add_secret()
        await place.add_pod(MOUNTED)
        async with running(place.unit(restricted)):
            await place.until_labelled(MARKED)
            await place.client.delete(POD, place.key("user"))
            await place.until_labelled(CONSIDERED)
            skip = {"metadata": {"labels": {SKIP: "true"}}}
            await place.patch(SERVICE_ACCOUNT, "robot", skip)
            await place.until_labelled(MARKED)
        assert refused.total() == 0
        for attempt in (
            restricted.delete(SECRET, place.secret),
            restricted.get(POD, place.key("user")),
            restricted.patch(SERVICE_ACCOUNT, place.key("robot"), skip),
            restricted.list(SECRET),
        ):
            with pytest.raises(Forbidden):
                await attempt
    with suppress(NotFound):
        await place.client.delete(CLUSTER_ROLE, Key.of(role))


# The example


def example(file: str, namespace: str) -> list[JsonObject]:
    """Return the objects of the example's file, adapted to another namespace."""
    text = (EXAMPLE / file).read_text().replace("demo-tokens", namespace)
    return [d.value for d in parse_documents(text) if isinstance(d.value, dict)]


async def test_the_example_does_what_its_readme_says(place: Place) -> None:
    (configuration,) = example("config.yaml", place.namespace)
    config, warnings = configuration_from(configuration)
    assert warnings == []
    assert config.controllers.token_invalidator.enabled
    for obj in example("manifests.yaml", place.namespace):
        if obj["kind"] != "Namespace":
            await place.client.create(obj)
    async with running(unit := place.unit()):
        await place.until_labelled(CONSIDERED, "robot-token")
        await place.until_labelled(MARKED, "worker-token")
        await place.until_labelled(MARKED, "old-token")
        await settled(unit, place.client)
        # The simulated node of the pod takes a moment to release it.
        await place.client.delete(POD, place.key("worker"))
        await place.until_labelled(CONSIDERED, "worker-token")
        await place.patch(SERVICE_ACCOUNT, "robot", {"metadata": {"labels": {SKIP: "true"}}})
        await place.until_labelled(MARKED, "robot-token")
