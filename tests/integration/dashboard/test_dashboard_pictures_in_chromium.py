"""The flow of a Garden and the network of an Infrastructure, in a real browser."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import orjson
import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import Key, generation_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.dashboard.state.cards import card_id
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.operator.reconcile.flows import SETUP
from tests.support.aws.steps import TECHNICAL_ID, StepsOf
from tests.support.chromium import Tab
from tests.support.garden import GARDEN as WITH_UID

pytestmark = [pytest.mark.soak("pages"), pytest.mark.timeout(900)]

PATIENCE: Final = 240.0  # deriving the tasks of a Garden takes seconds
LOCAL: Final = Key("", "drawn")
TASK: Final = "Deploying custom resource definitions for VPA"


def address(identity: str, part: str) -> str:
    return f"'#/objects/' + encodeURIComponent({orjson.dumps(identity).decode()}) + '/{part}'"


async def report(client: Client, state: str, description: str, **status: Any) -> None:
    """Write the status of the Garden as the operator would."""
    live = await client.get(GARDEN, LOCAL)
    last = {
        "type": "Reconcile",
        "state": state,
        "progress": 40,
        "description": description,
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    patch = {"lastOperation": last, "observedGeneration": generation_of(live), **status}
    await client.patch(GARDEN, LOCAL, {"status": patch}, subresource="status")


@pytest.fixture
async def garden(lone_client: Client, lone_tab: Tab) -> AsyncIterator[str]:
    """Yield the reference of a Garden whose flow the page shows."""
    await lone_client.create({**WITH_UID, "metadata": {"name": LOCAL.name}})
    identity = card_id(GARDEN, LOCAL)
    await lone_tab.run(f"location.hash = {address(identity, 'flow')}")
    await lone_tab.until("document.querySelectorAll('.task.pending').length > 50", PATIENCE)
    yield identity
    with suppress(NotFound):
        await lone_client.delete(GARDEN, LOCAL)


async def test_the_flow_of_a_garden_is_drawn_while_it_runs(
    lone_tab: Tab, lone_client: Client, garden: str
) -> None:
    tab = lone_tab
    await report(lone_client, "Processing", f"Starting {SETUP}")
    await tab.until("document.querySelector('.task.running')", PATIENCE)
    await tab.until("document.querySelector('.meter').value === 40")
    assert await tab.run("document.querySelectorAll('.flow path').length") > 50

    error = {"taskID": TASK, "description": "it is broken", "codes": ["ERR_X"]}
    await report(lone_client, "Error", "It failed.", lastErrors=[error])
    await tab.until("document.querySelector('.task.failed')", PATIENCE)
    await tab.run("document.querySelector('.task.failed').click()")
    await tab.until(f"document.querySelector('.about').innerText.includes({TASK!r})")
    await tab.until("document.querySelector('.about').innerText.includes('it is broken')")

    await lone_client.delete(GARDEN, LOCAL)
    await tab.until("document.body.innerText.includes('the object is gone')", PATIENCE)
    assert tab.complaints == []


async def test_the_network_of_an_infrastructure_is_drawn_as_it_is_in_aws(
    lone_tab: Tab, cluster: StepsOf
) -> None:
    tab = lone_tab
    identity = card_id(INFRASTRUCTURE, Key(TECHNICAL_ID, "web"))

    await tab.run(f"location.hash = {address(identity, 'network')}")
    await tab.until("document.querySelector('img.network')?.naturalWidth > 100")
    await tab.until("!document.body.innerText.includes('asking AWS')")
    drawn = await tab.run(
        "fetch(document.querySelector('img.network').src).then((it) => it.text())"
    )
    for each in (cluster.network.id, *cluster.network.workers.values()):
        assert each in drawn

    await tab.run(f"location.hash = {address(identity, 'flow')}")
    await tab.until("document.querySelectorAll('.task').length > 5")
    assert tab.complaints == []
