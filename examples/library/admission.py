"""Webhooks: `pergola.admission`."""

from pergola.admission import (
    Draft,
    GroupVersionResource,
    Registration,
    Request,
    Rule,
    Verdict,
    Webhook,
    allowed,
    denied,
    errored,
    invalid,
    webhook_server,
)
from pergola.api import GroupVersionKind, Key
from pergola.api.field_errors import required
from pergola.kube import Client
from pergola.runtime import Metrics


async def label(request: Request) -> Verdict:
    """Return a verdict that adds a label."""
    draft = Draft(request.object or {})
    draft.set(("metadata", "labels", "team"), "shop", because="objects belong to teams")
    return draft.verdict("it has a label already")


LABEL = Webhook(
    registration=Registration(
        name="label.example.com",
        path="/label",
        kind="mutating",
        rules=(Rule(["CREATE"], [""], ["v1"], ["configmaps"]),),
    ),
    handler=label,
)


async def verdicts() -> None:
    """Allow, deny, reject fields, and edit."""
    request = Request(
        uid="1",
        operation="CREATE",
        kind=GroupVersionKind("", "v1", "ConfigMap"),
        resource=GroupVersionResource("", "v1", "configmaps"),
        object={"metadata": {"name": "web", "labels": {}}},
    )
    verdict = await label(request)
    assert verdict.allowed
    assert len(verdict.edits) == 1
    assert allowed(warnings=("mode is deprecated",)).warnings
    assert not denied("only on Mondays").allowed
    assert errored(500, "the oven is off").code == 500
    assert invalid("ConfigMap", "web", (required("data.mode"),)).code == 422


def serving(client: Client) -> None:
    """Serve webhooks with a certificate of their own; a process takes the server."""
    server = webhook_server(client, [LABEL], Metrics(), service=Key("shop", "example"))
    assert server is not None
