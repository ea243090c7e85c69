"""`pergola garden compare` with a live landscape: additions of a real API server do not matter."""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.api.kinds import CRD, NAMESPACE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of, namespace_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Target
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.compare import from_objects, landscape_of, rendered
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox import API_ONLY, Sandbox, start, stop
from pergola.testing.crds import gvk_of, install_operator_crds, served
from tests.support.garden import GARDEN, WILDCARD_CERTIFICATE

PERGOLA = Path(sys.executable).parent / "pergola"
WILDCARD = {
    **WILDCARD_CERTIFICATE,
    "metadata": {
        **WILDCARD_CERTIFICATE["metadata"],
        "labels": {"gardener.cloud/role": "garden-cert"},
    },
}


class Live:
    """A landscape in a real API server, with the required kinds but without programs."""

    def __init__(self, client: Client, sandbox: Sandbox) -> None:
        self.client = client
        self._kubeconfig = sandbox.kubeconfig

    async def build(self) -> None:
        """Create the objects that our operator applies to the runtime cluster."""
        garden = await self.client.create({**GARDEN, "metadata": {"name": "garden"}})
        first = from_objects([garden, WILDCARD])
        of = template(OperatorConfiguration(), images({}), "1.36.0", garden_webhooks)
        here = rendered(landscape_of(garden, first, of, CATALOG), CATALOG)
        direct = [each.obj for each in here if not each.managed and each.cluster is Target.RUNTIME]
        used = {GroupVersionKind.of(obj).group_kind for obj in direct}
        definitions = [obj for obj in direct if GroupVersionKind.of(obj) == CRD]
        needed = [obj for obj in definitions if gvk_of(obj).group_kind in used]
        namespaces = [obj for obj in direct if GroupVersionKind.of(obj) == NAMESPACE]
        names = {namespace_of(obj) for obj in direct} - {"", *map(name_of, namespaces)}
        plain = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names]
        await self._create(*needed, *namespaces, *plain)
        await asyncio.gather(*(served(self.client, gvk_of(obj)) for obj in needed))
        webhooks = [obj for obj in direct if GroupVersionKind.of(obj) in (MUTATING, VALIDATING)]
        rest = [obj for obj in direct if obj not in (*definitions, *namespaces, *webhooks)]
        await self._create(WILDCARD, *rest)
        await self._create(*webhooks)  # without a server

    async def compared(self) -> tuple[int, dict[str, Any]]:
        """Return the exit code of the command, and its output for programs."""
        config = load(self._kubeconfig)
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", "compare", "--with", config.context, "-o", "json"),
            *("--kubeconfig", self._kubeconfig),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        return process.returncode or 0, orjson.loads(out)

    async def _create(self, *objects: JsonObject) -> None:
        await asyncio.gather(*(self.client.apply(each, manager="test") for each in objects))


@pytest.fixture
async def live() -> AsyncIterator[Live]:
    """Yield a landscape in a separate control plane, because it has so many kinds."""
    name = f"landscape-{os.getpid()}-{secrets.token_hex(3)}"
    sandbox = await start(name, components=API_ONLY)
    try:
        async with Client.connect(load(sandbox.kubeconfig)) as client:
            await install_operator_crds(client)
            found = Live(client, sandbox)
            await found.build()
            yield found
    finally:
        await stop(name)


async def test_a_landscape_with_our_objects_is_equal_and_a_manual_change_is_found(
    live: Live,
) -> None:
    _, found = await live.compared()

    assert [row["fields"] for row in found["differing"]] == []
    assert found["onlyThere"] == []
    assert {row["kind"] for row in found["onlyHere"]} == {"CustomResourceDefinition"}
    assert found["equal"] > 250

    service = GroupVersionKind("", "v1", "Service")
    key = Key("garden", "virtual-garden-kube-controller-manager")
    await live.client.patch(service, key, {"spec": {"selector": {"role": "other"}}})
    code, found = await live.compared()

    assert code == 2
    (differing,) = found["differing"]
    assert differing["fields"] == [
        {"path": "spec.selector.role", "there": "other", "here": "controller-manager"}
    ]
