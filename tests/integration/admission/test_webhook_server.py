"""A process of one's own with a webhook, from public names only."""

import asyncio

from pergola.admission import (
    Registration,
    Request,
    Rule,
    Verdict,
    Webhook,
    allowed,
    denied,
    webhook_server,
)
from pergola.api import GroupVersionKind, JsonObject, Key, map_at
from pergola.kube import Client, Forbidden
from pergola.runtime import Application, Metrics, ProcessOptions

CONFIGURATION = GroupVersionKind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"
)
PATIENCE = 60.0


def config_map(namespace: str, name: str, **data: str) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def needs_an_owner(request: Request) -> Verdict:
    owner = map_at(request.object or {}, "data").get("owner")
    return allowed() if owner else denied("a ConfigMap of this team has an owner")


def webhook(namespace: str) -> Webhook:
    registration = Registration(
        name="owners.example.org",
        path="/owners",
        kind="validating",
        rules=(Rule(["CREATE"], [""], ["v1"], ["configmaps"]),),
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    )
    return Webhook(registration=registration, handler=needs_an_owner)


async def test_a_webhook_is_served_and_registered(cluster_client: Client, namespace: str) -> None:
    service = Key(namespace, f"owners-{namespace}")
    options = ProcessOptions(health=None, metrics=None)
    app = Application(cluster_client, options, metrics=Metrics())
    server = webhook_server(
        cluster_client,
        [webhook(namespace)],
        app.metrics,
        service=service,
        url="https://127.0.0.1",
        host="127.0.0.1",
        port=0,
    )
    serving = asyncio.create_task(app.serve(webhooks=server))
    try:
        assert "has an owner" in await refused(cluster_client, namespace)
        await cluster_client.create(config_map(namespace, "owned", owner="a"))
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await cluster_client.delete(CONFIGURATION, Key("", service.name))


async def refused(client: Client, namespace: str) -> str:
    """Return why the API server refuses, which learns of a registration after a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(config_map(namespace, "free"), dry_run=True)
            except Forbidden as error:
                return str(error)
