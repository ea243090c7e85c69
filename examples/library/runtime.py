"""Caches, controllers and the process around them: `pergola.runtime`."""

import asyncio
import io
from datetime import UTC
from functools import partial

from pergola.api import GroupVersionKind, JsonObject, Key, labels_of
from pergola.kube import Client
from pergola.manifests import manifest
from pergola.runtime import (
    DONE,
    Address,
    Again,
    Application,
    Cache,
    Caches,
    Change,
    Controller,
    Election,
    Events,
    Index,
    LeaseTimes,
    Metrics,
    Outcome,
    Probes,
    ProcessOptions,
    Recorder,
    Regarding,
    SystemClock,
    Unit,
    Watch,
    all_of,
    changed,
    configure,
    exists,
    get_logger,
    later,
    one_key,
    owners,
    run,
)
from pergola.testing import running

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def controllers(client: Client, namespace: str) -> None:
    """Reconcile each ConfigMap of a namespace when it changes."""
    seen: asyncio.Queue[Key] = asyncio.Queue()

    async def reconcile(key: Key) -> Outcome:
        seen.put_nowait(key)
        return DONE if key.name == "settings" else Again(60)

    cache = Cache(client, CONFIG_MAP, labels_of, namespace=namespace)
    watch = Watch(cache, to=lambda change: [change.key], when=all_of(exists, changed))
    async with running(Controller("example", reconcile, watches=[watch], metrics=Metrics())):
        await client.create(manifest("v1", "ConfigMap", "settings", namespace=namespace))
        while (await seen.get()).name != "settings":
            pass
    assert cache.get(Key(namespace, "settings")) == {}


async def caches(client: Client, namespace: str) -> None:
    """Find objects of a cache by a value; watch several namespaces as one."""
    cache = Cache(client, CONFIG_MAP, labels_of, namespace=namespace)
    by_app = Index(cache, lambda _key, labels: [labels.get("app", "")])
    several = Caches(client, CONFIG_MAP, labels_of, namespaces=[namespace])
    obj = manifest("v1", "ConfigMap", "web", namespace=namespace, labels={"app": "web"})
    await client.create(obj)
    async with running(Unit("example", caches=[cache, *several])):
        assert Key(namespace, "web") in by_app.keys("web")
        assert several.get(Key(namespace, "web")) == {"app": "web"}


def triggers() -> None:
    """Decide which changes trigger which keys; other sources of events are triggers, too."""
    owned: JsonObject = {
        "metadata": {
            "namespace": "shop",
            "name": "web-1",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}],
        }
    }
    change = Change(Key("shop", "web-1"), None, owned, initial=True)
    assert owners(GroupVersionKind("apps", "v1", "ReplicaSet"))(change) == [Key("shop", "web")]
    assert not later(change)
    assert list(one_key("all")(change)) == ["all"]
    events: Events[str] = Events()
    heard: list[str] = []
    events.subscribe(heard.append)
    events.notify("configuration changed")
    assert heard == ["configuration changed"]


def processes(client: Client) -> None:
    """Assemble a process with endpoints and leader election; `run` ends it on SIGTERM."""
    options = ProcessOptions(
        health=Address("127.0.0.1", 8081),
        metrics=None,
        election=Election(namespace="shop", name="example", times=LeaseTimes(retry_period=1)),
    )
    application = Application(client, options)
    probes = Probes(readyz={"sun": lambda: "it is night"})
    start = partial(run, lambda: application.serve(probes=probes), "example")
    assert callable(start)


async def events(client: Client, namespace: str) -> None:
    """Tell users about an object by Events."""
    obj = await client.create(manifest("v1", "ConfigMap", "web", namespace=namespace))
    recorder = Recorder(client, "example")
    recorder.warning(Regarding.of(obj), "TooLarge", "settings have more than 1 MiB")
    async with running(Unit("events", tasks=[recorder.run])):
        pass


def logs() -> None:
    """Log events with fields, as JSON or text."""
    stream = io.StringIO()
    configure("info", "json", stream)
    get_logger("oven").info("pizza is ready", size=30)
    assert '"size":30' in stream.getvalue().replace(" ", "")
    assert SystemClock().now().tzinfo == UTC
