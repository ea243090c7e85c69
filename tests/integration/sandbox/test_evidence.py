"""The description of clusters in which something failed."""

import asyncio
from pathlib import Path

from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.manifests import manifest
from pergola.sandbox import Sandbox
from pergola.sandbox.evidence import Evidence
from pergola.testing.crds import served

_NEVER = "http://127.0.0.1:9"


async def test_conditions_events_and_logs_of_each_cluster_are_in_its_folder(
    cluster_client: Client, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    await cluster_client.create(
        manifest(
            "events.k8s.io/v1",
            "Event",
            "late",
            namespace=namespace,
            type="Warning",
            reason="Late",
            note="it is late",
            action="Wait",
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingController="example.org/test",
            reportingInstance="test",
            regarding={"kind": "ConfigMap", "namespace": namespace, "name": "web"},
        )
    )
    logs = tmp_path / "logs"
    (logs / "garden" / "web").mkdir(parents=True)
    (logs / "garden" / "web" / "main.log").write_text("started\n")
    (logs / "data").write_text("secret")
    known = Evidence()
    known.add("seed", kubeconfig, logs)
    folder = tmp_path / "found"

    await known.write(folder)
    await known.write(folder)

    conditions = (folder / "seed" / "conditions.txt").read_text()
    assert "\n  Ready=True KubeletReady " in conditions
    events = (folder / "seed" / "events.txt").read_text()
    assert f"2026-01-01T00:00:00.000000Z ConfigMap {namespace}/web Late: it is late\n" in events
    copied = [path for path in (folder / "seed" / "logs").rglob("*") if path.is_file()]
    assert [path.read_text() for path in copied] == ["started\n"]
    await cluster_client.delete(EVENT, Key(namespace, "late"))


async def test_a_kind_that_cannot_be_listed_does_not_hide_the_others(
    private_sandbox: Sandbox, tmp_path: Path
) -> None:
    kind = GroupVersionKind("example.org", "v1", "Widget")
    async with Client.connect(load(private_sandbox.kubeconfig)) as client:
        await client.create(unconvertible())
        await served(client, kind)
        await client.create(manifest(kind.api_version, "Widget", "stored", namespace="default"))
    known = Evidence()
    known.add("seed", private_sandbox.kubeconfig)

    await known.write(tmp_path / "found")

    conditions = (tmp_path / "found" / "seed" / "conditions.txt").read_text()
    assert "Widget cannot be listed: " in conditions
    assert "\n  Ready=True KubeletReady " in conditions
    assert "\nServiceCIDR kubernetes\n" in conditions


def unconvertible() -> JsonObject:
    """Return a definition whose webhook, which converts from the stored version, does not exist."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.example.org",
        spec={
            "group": "example.org",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": schema},
                {"name": "v2", "served": True, "storage": False, "schema": schema},
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "https://127.0.0.1:9/convert"},
                    "conversionReviewVersions": ["v1"],
                },
            },
        },
    )


async def test_a_cluster_that_does_not_answer_is_described_as_such(
    kubeconfig: Path, tmp_path: Path
) -> None:
    document = parse(await asyncio.to_thread(kubeconfig.read_bytes))
    assert isinstance(document, dict)
    for cluster in maps_at(document, "clusters"):
        cluster["cluster"] = {"server": _NEVER}
    gone = tmp_path / "gone.kubeconfig"
    gone.write_text(dump(document))
    known = Evidence()
    known.add("gone", gone)

    await known.write(tmp_path / "found")

    for name in ("conditions.txt", "events.txt"):
        text = (tmp_path / "found" / "gone" / name).read_text()
        assert text.startswith("The cluster cannot be read: ")
