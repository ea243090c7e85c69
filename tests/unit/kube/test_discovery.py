"""Discovery of served kinds: one request per group and version, repeated where it may help."""

import asyncio

import orjson
import pytest

from pergola.api.kinds import DEPLOYMENT, NODE, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.discovery import Discovery, Resource
from pergola.kube.errors import InvalidKey, NotFound, UnknownKind, Unreachable, WrongAnswer

SCALE = GroupVersionKind("apps", "v1", "Scale")
GADGET = GroupVersionKind("example.org", "v1", "Gadget")


def served(kind: str, name: str, *, namespaced: bool = True) -> JsonObject:
    return {"name": name, "kind": kind, "namespaced": namespaced}


def group(name: str) -> JsonObject:
    return {"name": name, "versions": [{"groupVersion": f"{name}/v1", "version": "v1"}]}


class Server:
    """A server's responses by path, the number of requests for each, and the time."""

    def __init__(self) -> None:
        self.paths: dict[str, list[JsonObject]] = {
            "/api/v1": [
                served("Pod", "pods"),
                served("Pod", "pods/status"),
                served("Node", "nodes", namespaced=False),
            ],
            "/apis/apps/v1": [
                served("Scale", "deployments/scale"),
                served("Deployment", "deployments"),
                served("Deployment", "deployments/status"),
            ],
        }
        self.listed: list[list[str]] = []  # groups, for each look at the list; then none
        self.asked: list[str] = []
        self.now = 0.0
        self.away = False
        self.answering = asyncio.Event()
        self.answering.set()

    async def fetch(self, path: str) -> bytes:
        if path == "/apis":
            groups = [group(name) for name in (self.listed.pop(0) if self.listed else [])]
            return orjson.dumps({"kind": "APIGroupList", "groups": groups})
        self.asked.append(path)
        await self.answering.wait()
        if self.away:
            raise Unreachable("no server")
        if path not in self.paths:
            raise NotFound(404, {})
        name = path.removeprefix("/api/").removeprefix("/apis/")
        kinds = {"groupVersion": name, "resources": self.paths[path]}
        return orjson.dumps({"kind": "APIResourceList", **kinds})

    def discovery(self) -> Discovery:
        return Discovery(self.fetch, now=lambda: self.now, refresh=10.0)


async def test_a_group_version_is_requested_once() -> None:
    server = Server()
    discovery = server.discovery()
    assert discovery.known(POD) is None
    for _ in range(2):
        assert await discovery.resource(POD) == Resource(POD, "pods", namespaced=True)
        assert await discovery.resource(NODE) == Resource(NODE, "nodes", namespaced=False)
    assert discovery.known(POD) == Resource(POD, "pods", namespaced=True)
    assert server.asked == ["/api/v1"]
    await discovery.resource(DEPLOYMENT)
    assert server.asked == ["/api/v1", "/apis/apps/v1"]


async def test_subresources_are_not_separate_kinds() -> None:
    discovery = Server().discovery()
    assert (await discovery.resource(DEPLOYMENT)).plural == "deployments"
    with pytest.raises(UnknownKind):
        await discovery.resource(SCALE)


@pytest.mark.parametrize("gvk", [GADGET, POD._replace(kind="Pot")])
async def test_an_unknown_kind_is_requested_again_only_after_the_refresh_time(
    gvk: GroupVersionKind,
) -> None:
    server = Server()
    discovery = server.discovery()
    for moment, asked in ((0.0, 1), (9.9, 1), (10.0, 2), (19.9, 2), (20.0, 3)):
        server.now = moment
        with pytest.raises(UnknownKind, match=gvk.kind):
            await discovery.resource(gvk)
        assert len(server.asked) == asked


async def test_a_kind_that_appears_later_is_found() -> None:
    server = Server()
    discovery = server.discovery()
    with pytest.raises(UnknownKind):
        await discovery.resource(GADGET)
    server.paths["/apis/example.org/v1"] = [served("Gadget", "gadgets")]
    server.now = 10.0
    assert (await discovery.resource(GADGET)).plural == "gadgets"


@pytest.mark.parametrize(("looks", "error"), [(1, UnknownKind), (99, WrongAnswer)])
async def test_a_group_that_is_gone_may_be_listed_a_moment_longer(
    looks: int, error: type[Exception]
) -> None:
    server = Server()
    discovery = server.discovery()
    server.paths["/apis/example.org/v1"] = [served("Gadget", "gadgets")]
    await discovery.resource(GADGET)
    del server.paths["/apis/example.org/v1"]
    discovery.forget(GADGET)
    server.listed = [["example.org"]] * looks
    with pytest.raises(error):
        await discovery.resource(GADGET)


async def test_known_kinds_are_not_requested() -> None:
    server = Server()
    discovery = server.discovery()
    await discovery.resource(POD)
    server.away = True
    server.now = 1000.0
    assert (await discovery.resource(NODE)).plural == "nodes"


async def test_an_unreachable_server_does_not_make_a_kind_unknown() -> None:
    server = Server()
    discovery = server.discovery()
    server.away = True
    with pytest.raises(Unreachable):
        await discovery.resource(POD)
    server.away = False
    assert (await discovery.resource(POD)).plural == "pods"


async def test_concurrent_callers_share_one_request() -> None:
    server = Server()
    discovery = server.discovery()
    server.answering.clear()
    asking = [asyncio.create_task(discovery.resource(gvk)) for gvk in (POD, NODE, POD)]
    missing = [asyncio.create_task(discovery.resource(GADGET)) for _ in range(3)]
    await asyncio.sleep(0)
    server.answering.set()
    assert [found.plural for found in await asyncio.gather(*asking)] == ["pods", "nodes", "pods"]
    outcomes = await asyncio.gather(*missing, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [UnknownKind] * 3
    assert sorted(server.asked) == ["/api/v1", "/apis/example.org/v1"]


async def test_a_cancelled_caller_does_not_cancel_the_others() -> None:
    server = Server()
    discovery = server.discovery()
    server.answering.clear()
    first = asyncio.create_task(discovery.resource(POD))
    second = asyncio.create_task(discovery.resource(POD))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    server.answering.set()
    assert (await second).plural == "pods"
    assert first.cancelled()


async def test_a_forgotten_kind_is_requested_again_at_once() -> None:
    server = Server()
    discovery = server.discovery()
    await discovery.resource(POD)
    server.paths["/api/v1"] = [served("Node", "nodes", namespaced=False)]
    discovery.forget(POD)
    assert discovery.known(NODE) is None
    with pytest.raises(UnknownKind):
        await discovery.resource(POD)
    discovery.forget(POD)
    with pytest.raises(UnknownKind):
        await discovery.resource(POD)
    assert len(server.asked) == 3


@pytest.mark.parametrize("gvk", [POD._replace(kind=""), POD._replace(version="")])
async def test_invalid_kinds_are_not_requested(gvk: GroupVersionKind) -> None:
    server = Server()
    with pytest.raises(UnknownKind):
        await server.discovery().resource(gvk)
    assert server.asked == []


@pytest.mark.parametrize(
    ("resource", "key", "subresource", "path"),
    [
        (
            Resource(POD, "pods", namespaced=True),
            Key("ns", "a"),
            "",
            "/api/v1/namespaces/ns/pods/a",
        ),
        (
            Resource(DEPLOYMENT, "deployments", namespaced=True),
            Key("ns", "a"),
            "status",
            "/apis/apps/v1/namespaces/ns/deployments/a/status",
        ),
        (Resource(NODE, "nodes", namespaced=False), Key("ns", "a"), "", "/api/v1/nodes/a"),
        (
            Resource(NODE, "nodes", namespaced=False),
            Key("", "a:b c?"),
            "",
            "/api/v1/nodes/a%3Ab%20c%3F",
        ),
    ],
)
def test_paths_of_objects_follow_the_api(
    resource: Resource, key: Key, subresource: str, path: str
) -> None:
    assert resource.item(key, subresource) == path


@pytest.mark.parametrize(
    ("resource", "key"),
    [
        (Resource(NODE, "nodes", namespaced=False), Key("", "")),
        (Resource(NODE, "nodes", namespaced=False), Key("", "a/../b")),
        (Resource(POD, "pods", namespaced=True), Key("ns", "..")),
        (Resource(POD, "pods", namespaced=True), Key("", "a")),
        (Resource(POD, "pods", namespaced=True), Key("a/pods", "b")),
    ],
)
def test_a_key_that_addresses_no_single_object_has_no_path(resource: Resource, key: Key) -> None:
    with pytest.raises(InvalidKey):
        resource.item(key)
