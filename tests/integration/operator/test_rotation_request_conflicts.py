"""Requests of `pergola garden rotate` with concurrent writers, on a real API server."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from pergola.api.objects import Key, annotations_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.garden.rotate_steps import _request
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.rotation.requested import Action, Kind, Refused, request
from pergola.sandbox import Sandbox
from tests.support.gardens import MINIMAL
from tests.support.overtaken import Overtaken

MINE: Final = Key("", "minimal")
STEP: Final[tuple[Kind, Action]] = ("ca", "start")
OPERATION: Final = "gardener.cloud/operation"


@pytest.fixture
async def overtaken(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[Overtaken]:
    await runtime.create(MINIMAL)
    async with Overtaken.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client


async def ask(client: Client) -> None:
    garden = await client.get(GARDEN, MINE)
    await _request(client, garden, request(garden, *STEP), STEP, ("far",))


async def test_a_concurrent_change_of_the_status_does_not_stop_a_request(
    overtaken: Overtaken, runtime: Client
) -> None:
    status = {"status": {"observedGeneration": 1}}
    overtaken.before = lambda: runtime.patch(GARDEN, MINE, status, subresource="status")
    await ask(overtaken)
    found = annotations_of(await runtime.get(GARDEN, MINE))
    assert found[OPERATION] == "rotate-ca-start"
    assert "far" in found.values()


async def test_a_concurrent_request_is_not_overwritten(
    overtaken: Overtaken, runtime: Client
) -> None:
    other = {"metadata": {"annotations": {OPERATION: "reconcile"}}}
    overtaken.before = lambda: runtime.patch(GARDEN, MINE, other)
    with pytest.raises(Refused, match='has not begun "reconcile" yet'):
        await ask(overtaken)
    assert annotations_of(await runtime.get(GARDEN, MINE))[OPERATION] == "reconcile"
