"""The printed policies allow each call of the driver that starts and terminates nodes."""

from collections.abc import AsyncIterator

import pytest

from pergola.providers.aws.iam_policy import Mode, iam_policy
from pergola.testing.waiting import running
from tests.support.aws.authorization import AskingAws
from tests.support.aws.recorded_permissions import MACHINE_DRIVER, check_recorded
from tests.support.aws.worker_site import WorkerSite


@pytest.fixture
async def aws(moto_server: str) -> AsyncIterator[AskingAws]:
    """Yield an empty account that notes which permissions the driver needs."""
    async with AskingAws(moto_server) as double:
        yield double


async def test_machines_live_and_die_with_the_printed_policy(
    aws: AskingAws, worker_site: WorkerSite
) -> None:
    actuator = await worker_site.create_worker()
    async with running(worker_site.unit(actuator)):
        await worker_site.until_reconciled()
        await worker_site.delete()
        await worker_site.until_gone()

    needed = {each.action for each in aws.asked}
    assert {"ec2:RunInstances", "ec2:TerminateInstances"} <= needed
    policy = iam_policy(Mode.CONTROL_PLANE)
    assert [each for each in aws.asked if not each.is_allowed(policy)] == []
    check_recorded(MACHINE_DRIVER, aws.asked, worker_site.namespace)
