"""One process: the order of its start, and its end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import test_utils, web

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, Key
from pergola.kube.client import Client
from pergola.kube.discovery import Resource
from pergola.runtime.controlling.unit import Part, Unsynced
from pergola.runtime.process import application
from pergola.runtime.process.application import Application, Probes
from pergola.runtime.process.endpoints import Notice
from pergola.runtime.process.leader_election import LostLeadership
from pergola.runtime.process.options import Address, Election, ProcessOptions
from tests.support.cluster_config import cluster_config
from tests.support.logs import captured_logs

NOWHERE = cluster_config()
QUIET = ProcessOptions(health=None, metrics=None)


class Story:
    """The events of a test, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._heard = asyncio.Event()

    def add(self, line: str) -> None:
        self.lines.append(line)
        self._heard.set()

    async def until(self, line: str) -> None:
        async with asyncio.timeout(20):
            while line not in self.lines:
                self._heard.clear()
                await self._heard.wait()


class Recorded:
    """A component that adds to the story when it starts and when it ends."""

    is_idle = True

    def __init__(self, name: str, story: Story, error: Exception | None = None) -> None:
        self.name = name
        self.lists = asyncio.Event()
        self._story = story
        self._error = error

    @property
    def unsynced(self) -> list[Unsynced]:
        if self.lists.is_set():
            return []
        return [Unsynced(f"v1/{self.name}", "not listed yet", is_outage=False)]

    async def synced(self) -> None:
        await self.lists.wait()

    async def run(self) -> None:
        self._story.add(f"{self.name} runs")
        if self._error is not None:
            raise self._error
        try:
            await asyncio.Event().wait()
        finally:
            self._story.add(f"{self.name} ends")


class Webhooks:
    """A webhook server that serves nothing."""

    def __init__(self, story: Story, *, is_needed: bool = True) -> None:
        self.is_needed = is_needed
        self.units: list[Recorded] = []
        self._story = story

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        self._story.add("webhooks are served")
        self.units.append(Recorded("certificate", self._story))
        try:
            yield
        finally:
            self._story.add("webhooks end")

    def leading(self) -> Sequence[Recorded]:
        return [Recorded("registration", self._story)]

    async def is_ready(self) -> str | None:
        return "no certificate yet"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client.connect(NOWHERE) as client:
        yield client


@pytest.fixture
async def story() -> Story:
    return Story()


@asynccontextmanager
async def serving(
    app: Application,
    story: Story,
    *,
    parts: Sequence[Part] = (),
    webhooks: Webhooks | None = None,
    probes: Probes | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    async def leading() -> list[Recorded]:
        story.add("leader's parts are made")
        return [Recorded("controller", story)]

    task = asyncio.create_task(
        app.serve(parts=parts, webhooks=webhooks, leading=leading, probes=probes)
    )
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_leader_starts_after_the_webhooks_and_the_first_lists(
    client: Client, story: Story
) -> None:
    cache = Recorded("cache", story)
    app = Application(client, QUIET)
    async with serving(app, story, parts=[cache], webhooks=Webhooks(story)):
        await story.until("certificate runs")
        assert story.lines == ["webhooks are served", "cache runs", "certificate runs"]
        cache.lists.set()
        await story.until("controller runs")
        assert story.lines[3:] == [
            "leader's parts are made",
            "registration runs",
            "controller runs",
        ]
        assert [part.name for part in app.running] == [
            "cache",
            "certificate",
            "registration",
            "controller",
        ]
    ended = story.lines[6:]
    assert sorted(ended[:-1]) == [
        "cache ends",
        "certificate ends",
        "controller ends",
        "registration ends",
    ]
    assert ended[-1] == "webhooks end"


async def test_unneeded_webhooks_are_not_served(client: Client, story: Story) -> None:
    webhooks = Webhooks(story, is_needed=False)
    async with serving(Application(client, QUIET), story, webhooks=webhooks):
        await story.until("controller runs")
    assert story.lines == ["leader's parts are made", "controller runs", "controller ends"]


async def test_a_failed_component_ends_the_process_with_its_error(
    client: Client, story: Story
) -> None:
    broken = Recorded("cache", story, RuntimeError("boom"))
    with pytest.raises(ExceptionGroup) as raised:
        await Application(client, QUIET).serve(parts=[broken])
    assert [str(error) for error in raised.value.exceptions] == ["boom"]


async def test_probes_are_served_while_the_process_starts(client: Client, story: Story) -> None:
    anywhere = Address("127.0.0.1", 0)
    app = Application(client, ProcessOptions(health=anywhere, metrics=anywhere))
    cache = Recorded("cache", story)
    with captured_logs(application) as logs:
        async with serving(app, story, parts=[cache], webhooks=Webhooks(story)):
            await story.until("certificate runs")
            [ports] = [line for line in logs if line["event"] == "endpoints are served"]
            url = f"http://127.0.0.1:{ports['health_port']}"
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{url}/healthz") as answer:
                    assert answer.status == 200
                async with session.get(f"{url}/readyz") as answer:
                    text = await answer.text()
                async with session.get(f"http://127.0.0.1:{ports['metrics_port']}/metrics") as made:
                    assert made.status == 200
    assert "[-]informer-sync failed: v1/cache: not listed yet" in text
    assert "[-]webhook-server failed: no certificate yet" in text


async def test_checks_of_the_product_replace_the_default_one(client: Client, story: Story) -> None:
    app = Application(client, ProcessOptions(health=Address("127.0.0.1", 0), metrics=None))
    probes = Probes(
        healthz={"apiserver": Notice(lambda: "away")}, readyz={"source": lambda: "away"}
    )
    with captured_logs(application) as logs:
        async with serving(app, story, probes=probes):
            await story.until("controller runs")
            [ports] = [line for line in logs if line["event"] == "endpoints are served"]
            url = f"http://127.0.0.1:{ports['health_port']}"
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{url}/readyz") as answer:
                    assert await answer.text() == "[-]source failed: away\nreadyz check failed\n"
                async with session.get(f"{url}/healthz") as answer:
                    assert answer.status == 200


async def test_without_leader_election_every_write_passes(client: Client) -> None:
    assert Application(client, QUIET).guarded(client) is client


async def served(gvk: GroupVersionKind) -> Resource:
    return Resource(gvk, "configmaps", namespaced=True)


async def test_with_leader_election_only_the_leader_writes() -> None:
    election = Election(namespace="garden", name="test")
    written: list[str] = []

    async def write(request: web.BaseRequest) -> web.Response:
        written.append(request.path)
        return web.json_response({})

    server = test_utils.RawTestServer(write)
    await server.start_server()
    config = cluster_config(str(server.make_url("")))
    async with server, Client.connect(config) as client:
        app = Application(client, ProcessOptions(health=None, metrics=None, election=election))
        client.discovery.resource = served  # type: ignore[method-assign]
        guarded = app.guarded(client)
        with pytest.raises(LostLeadership, match="garden/test"):
            await guarded.patch(CONFIG_MAP, Key("garden", "x"), {})
    assert written == []
