"""`pergola garden compare` with a live landscape: what a real API server adds is no difference."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import NAMESPACE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, namespace_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, ApiError, UnknownKind
from pergola.kube.kubeconfig import load
from pergola.operator.compare import from_objects, landscape_of, rendered
from pergola.operator.components.catalog import CATALOG
from pergola.operator.components.component import Target
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox import Sandbox
from pergola.testing.garden import GARDEN, WILDCARD_CERTIFICATE

PERGOLA = Path(sys.executable).parent / "pergola"
WILDCARD = {
    **WILDCARD_CERTIFICATE,
    "metadata": {
        **WILDCARD_CERTIFICATE["metadata"],
        "labels": {"gardener.cloud/role": "garden-cert"},
    },
}


class Live:
    """A landscape in a real API server, which has none of the kinds of other projects."""

    def __init__(self, client: Client, sandbox: Sandbox) -> None:
        self.client = client
        self._kubeconfig = sandbox.kubeconfig
        self._applied: list[JsonObject] = []

    async def build(self) -> None:
        """Apply what ours renders in the runtime cluster, as far as the cluster has the kinds."""
        garden = {**GARDEN, "metadata": {"name": "garden"}}
        first = from_objects([garden, WILDCARD])
        of = template(OperatorConfiguration(), images({}), "1.36.0", garden_webhooks)
        here = rendered(landscape_of(garden, first, of, CATALOG), CATALOG)
        direct = [each.obj for each in here if not each.managed and each.cluster is Target.RUNTIME]
        namespaces = {namespace_of(obj) for obj in direct} - {""}
        missing = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in namespaces
        ]
        own = [obj for obj in direct if GroupVersionKind.of(obj) == NAMESPACE]
        for obj in (*own, *missing, garden, WILDCARD, *direct):
            await self._create(obj)

    async def clean(self) -> None:
        """Delete all of it; namespaces stay."""
        for obj in self._applied:
            if GroupVersionKind.of(obj) != NAMESPACE:
                await self.client.delete(GroupVersionKind.of(obj), Key.of(obj))

    async def compared(self) -> tuple[int, dict[str, Any]]:
        """Return the exit code of the command, and what it prints for programs."""
        config = load(self._kubeconfig)
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", "compare", "--with", config.context, "-o", "json"),
            *("--kubeconfig", self._kubeconfig),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        return process.returncode or 0, orjson.loads(out)

    async def _create(self, obj: JsonObject) -> None:
        try:
            await self.client.create(obj)
        except (UnknownKind, AlreadyExists):
            return
        self._applied.append(obj)


@pytest.fixture
async def live(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[Live]:
    found = Live(runtime, garden_sandbox)
    await found.build()
    yield found
    await found.clean()


async def served(client: Client, row: JsonObject) -> bool:
    """Return whether the cluster serves the kind of an object."""
    versions = ("v1", "v1alpha1", "v1beta1", "v2")
    for version in versions:
        try:
            await client.resource(GroupVersionKind(row["apiGroup"], version, row["kind"]))
        except (UnknownKind, ApiError):
            continue
        return True
    return False


async def test_a_landscape_with_our_objects_is_equal_and_a_change_by_hand_is_found(
    live: Live,
) -> None:
    _, found = await live.compared()

    assert found["differing"] == []
    assert found["onlyThere"] == []
    absent = [row for row in found["onlyHere"] if await served(live.client, row)]
    assert absent == []
    assert found["equal"] > 300

    service = GroupVersionKind("", "v1", "Service")
    key = Key("garden", "virtual-garden-kube-controller-manager")
    await live.client.patch(service, key, {"spec": {"selector": {"role": "other"}}})
    code, found = await live.compared()

    assert code == 2
    (differing,) = found["differing"]
    assert differing["fields"] == [
        {"path": "spec.selector.role", "there": "other", "here": "controller-manager"}
    ]
