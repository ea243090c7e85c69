"""A webhook that refuses ConfigMaps without an owner, in namespaces that ask for it."""

import os

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
from pergola.api import Key, map_at
from pergola.kube import Client, load
from pergola.runtime import Application, run


def review(request: Request) -> Verdict:
    """Decide about one request; a pure function, which tests call without a server."""
    if map_at(request.object or {}, "data").get("owner"):
        return allowed()
    return denied("a ConfigMap in this namespace needs the key owner")


WARDEN = Webhook(
    registration=Registration(
        name="warden.example.org",
        path="/warden",
        kind="validating",
        rules=(Rule(["CREATE", "UPDATE"], [""], ["v1"], ["configmaps"]),),
        namespace_selector={"matchLabels": {"example.org/warden": "true"}},
    ),
    handler=review,
)


async def main() -> None:
    """Serve the webhook, and `/healthz`, `/readyz` and `/metrics`, until SIGTERM."""
    service = Key(os.environ.get("POD_NAMESPACE", "default"), "warden")
    url = os.environ.get("WARDEN_URL", "")  # without a Service, such as https://127.0.0.1
    async with Client.connect(load()) as client:
        app = Application(client)
        server = webhook_server(client, [WARDEN], app.metrics, service=service, url=url)
        await app.serve(webhooks=server)


if __name__ == "__main__":
    run(main)
