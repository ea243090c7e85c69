"""Greetings: each has a ConfigMap with its text, and a line in the guest book."""

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from pergola.api import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    generation_of,
    map_at,
    maps_at,
    owner_reference,
    set_condition,
)
from pergola.api.schema import Column, Object, Value, kind
from pergola.kube import Client, NotFound, add_finalizer, load, remove_finalizer
from pergola.runtime import (
    DONE,
    Application,
    Cache,
    Controller,
    Metrics,
    Outcome,
    Watch,
    owners,
    run,
)

GREETING = GroupVersionKind("example.org", "v1", "Greeting")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
FINALIZER = "example.org/guest-book"
BOOK = "guest-book"


class GreetingSpec(Value):
    """What a user asks for."""

    to: Annotated[str, Meta(min_length=1, max_length=60)]
    """Who is greeted."""


@kind("example.org/v1", status=True, columns=(Column("To", ".spec.to"),))
class Greeting(Object, kw_only=True):
    """A greeting in a ConfigMap of the same name."""

    spec: GreetingSpec
    """What a user asks for."""
    status: JsonObject | None = None
    """The condition Ready, and the generation that it is about."""


def greetings(client: Client, metrics: Metrics) -> Controller:
    """Return the controller."""
    objects = Cache(client, GREETING, lambda obj: obj)
    texts = Cache(client, CONFIG_MAP, lambda obj: obj, labels="example.org/greeting")

    async def reconcile(key: Key) -> Outcome:
        greeting = objects.get(key)
        if greeting is None:
            return DONE
        if deletion_timestamp_of(greeting):
            await write_line(client, key, None)
            await remove_finalizer(client, GREETING, greeting, FINALIZER)
            return DONE
        kept = await add_finalizer(client, GREETING, greeting, FINALIZER)
        if kept is None:
            return DONE
        to = str(map_at(greeting, "spec").get("to"))
        data = {"text": f"Hello, {to}!"}
        if map_at(texts.get(key) or {}, "data") != data:
            await client.apply(text_of(greeting, data), manager="greetings", force=True)
        await write_line(client, key, to)
        await report(client, greeting, f"{to} was greeted")
        return DONE

    watches = [Watch(objects), Watch(texts, to=owners(GREETING))]
    return Controller("greetings", reconcile, watches=watches, metrics=metrics)


def text_of(greeting: JsonObject, data: JsonObject) -> JsonObject:
    """Return the ConfigMap of a greeting, which disappears with it."""
    metadata = {
        "name": greeting["metadata"]["name"],
        "namespace": greeting["metadata"]["namespace"],
        "labels": {"example.org/greeting": "true"},
        "ownerReferences": [owner_reference(greeting)],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def write_line(client: Client, key: Key, to: str | None) -> None:
    """Write the line of a greeting into the guest book, which is nobody's; None removes it."""
    book = Key(key.namespace, BOOK)
    line = {"data": {key.name: to}}
    try:
        found = await client.get(CONFIG_MAP, book)
        if map_at(found, "data").get(key.name) != to:
            await client.patch(CONFIG_MAP, book, line)
    except NotFound:
        if to is not None:
            metadata = {"name": book.name, "namespace": book.namespace}
            await client.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata} | line
            )


async def report(client: Client, greeting: JsonObject, message: str) -> None:
    """Write the status, unless it says so already."""
    status = {
        "observedGeneration": generation_of(greeting),
        "conditions": set_condition(
            maps_at(greeting, "status", "conditions"),
            "Ready",
            status="True",
            reason="Greeted",
            message=message,
            now=datetime.now(UTC),
        ),
    }
    if status != map_at(greeting, "status"):
        await client.patch(GREETING, Key.of(greeting), {"status": status}, subresource="status")


async def main() -> None:
    """Run the controller, and serve `/healthz`, `/readyz` and `/metrics`, until SIGTERM."""
    async with Client.connect(load()) as client:
        app = Application(client)
        await app.serve(leading=[greetings(app.guarded(client), app.metrics)])


if __name__ == "__main__":
    run(main)
