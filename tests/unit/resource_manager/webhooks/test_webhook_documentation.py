"""`docs/reference/webhooks.md` lists every webhook with its registration."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pergola.admission.registration import Registration
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, maps_at
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import KubernetesServiceHost, Webhooks
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import PATH

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "webhooks.md"
HEAD = "| name | path | reviews | opt-out | configuration | policy |"
SUFFIX = ".resources.gardener.cloud"


def enabled_by(block: str) -> list[Webhook]:
    """Return the webhooks that one block of the configuration enables."""
    settings = Webhooks(kubernetes_service_host=KubernetesServiceHost(host="x"))
    switch: Switch = getattr(settings, block)
    switch.enabled = True
    installation = Installation("runtime", garden=True, hvpa=True)
    return webhooks(settings, Dependencies(installation, DocumentLookups([])))


def rows() -> Iterator[str]:
    """Return the table's rows, in the order in which API servers call the webhooks."""
    yield HEAD
    yield "|---|---|---|---|---|---|"
    names = {field.name: field.encode_name for field in msgspec.structs.fields(Webhooks)}
    found = [(block, webhook) for block in names for webhook in enabled_by(block)]
    order = [webhook.registration.name for webhook in everything()]
    for block, webhook in sorted(found, key=lambda f: order.index(f[1].registration.name)):
        entry = webhook.registration
        yield (
            f"| `{entry.name.removesuffix(SUFFIX)}` | `{entry.path}` | {_reviews(entry)} | "
            f"{_opt_out(entry.object_selector)} | `{names[block]}` | "
            f"{entry.failure_policy}, {entry.timeout_seconds} s |"
        )


def everything() -> list[Webhook]:
    settings = Webhooks(kubernetes_service_host=KubernetesServiceHost(host="x"))
    for name in settings.__struct_fields__:
        switch: Switch = getattr(settings, name)
        switch.enabled = True
    installation = Installation("runtime", garden=True, hvpa=True)
    return webhooks(settings, Dependencies(installation, DocumentLookups([])))


def _reviews(entry: Registration) -> str:
    verbs = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}
    parts = []
    for rule in entry.rules:
        operations = ", ".join(verbs[operation] for operation in rule.operations)
        parts.append(f"{', '.join(rule.resources)} ({operations})")
    return "; ".join(parts)


def _opt_out(selector: JsonObject) -> str:
    labels = [
        f"`{part['key']}`"
        for part in maps_at(selector, "matchExpressions")
        if part["operator"] == "DoesNotExist"
    ]
    labels += [
        f"`{part['key']}={value}`"
        for part in maps_at(selector, "matchExpressions")
        if part["operator"] == "NotIn" and part["key"] not in ("app", "static-pod")
        for value in part["values"]
    ]
    return ", ".join(labels) or "none"


def test_the_table_matches_the_catalog() -> None:
    lines = DOCUMENT.read_text().splitlines()
    start = lines.index(HEAD)
    expected = list(rows())
    assert lines[start : start + len(expected)] == expected
    assert lines[start + len(expected)] == ""


@pytest.mark.parametrize("text", [PATH, "clientCAFile", "static-pod", "selfSigned"])
def test_the_page_mentions_everything_else(text: str) -> None:
    assert text in DOCUMENT.read_text()
