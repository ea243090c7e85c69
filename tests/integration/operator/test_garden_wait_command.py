"""`pergola garden wait` with a changing Garden (spec 21 §12.4)."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.kube.client import Client
from pergola.sandbox import Sandbox
from tests.support.gardens import MINIMAL

PERGOLA: Final = Path(sys.executable).parent / "pergola"
MINE: Final = Key("", "minimal")
TIME: Final = "2026-01-01T00:00:00Z"


@dataclass
class Waiting:
    """A running command."""

    process: asyncio.subprocess.Process

    async def ended(self) -> tuple[int, str]:
        """Return the exit code and the output."""
        _, said = await self.process.communicate()
        return self.process.returncode or 0, said.decode()


async def wait(sandbox: Sandbox, *arguments: str) -> Waiting:
    return Waiting(
        await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", "wait", *arguments, "--kubeconfig", str(sandbox.kubeconfig)),
            stderr=asyncio.subprocess.PIPE,
        )
    )


async def report(client: Client, *, state: str = "Succeeded", healthy: str = "True") -> None:
    """Write a status, as the operator does."""
    live = await client.get(GARDEN, MINE)
    times = {"lastTransitionTime": TIME, "lastUpdateTime": TIME, "reason": "x"}
    status: JsonObject = {
        "observedGeneration": live["metadata"]["generation"],
        "lastOperation": {
            "type": "Reconcile",
            "state": state,
            "progress": 100,
            "description": "Deploying",
            "lastUpdateTime": TIME,
        },
        "conditions": [
            {"type": kind, "status": healthy, "message": "etcd is down", **times}
            for kind in CARE_CONDITIONS
        ],
    }
    await client.patch(GARDEN, MINE, {"status": status}, subresource="status")


async def test_the_command_ends_when_the_garden_is_ready(
    runtime: Client, garden_sandbox: Sandbox
) -> None:
    await runtime.create(MINIMAL)
    waiting = await wait(garden_sandbox)
    await report(runtime, state="Processing")
    await report(runtime, healthy="False")
    await report(runtime)
    assert await waiting.ended() == (0, "")


async def test_a_broken_garden_fails_after_the_timeout(
    runtime: Client, garden_sandbox: Sandbox
) -> None:
    await runtime.create(MINIMAL)
    await report(runtime, healthy="False")
    waiting = await wait(garden_sandbox, "--for", "VirtualComponentsHealthy", "--timeout", "5s")
    said = "Garden minimal: VirtualComponentsHealthy is False: etcd is down (after 5s)\n"
    assert await waiting.ended() == (1, said)


async def test_the_command_ends_when_the_garden_is_deleted(
    runtime: Client, garden_sandbox: Sandbox
) -> None:
    await runtime.create(MINIMAL)
    waiting = await wait(garden_sandbox, "--for", "delete")
    await runtime.delete(GARDEN, MINE)
    assert await waiting.ended() == (0, "")
    assert await (await wait(garden_sandbox, "--for", "delete")).ended() == (0, "")


async def test_an_impossible_wait_is_an_error(runtime: Client, garden_sandbox: Sandbox) -> None:
    code, said = await (await wait(garden_sandbox)).ended()
    assert (code, "there is not one Garden in the cluster" in said) == (1, True)
    await runtime.create(MINIMAL)
    code, said = await (await wait(garden_sandbox, "--timeout", "soon")).ended()
    assert (code, 'invalid duration "soon"' in said) == (1, True)
