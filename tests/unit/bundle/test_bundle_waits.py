import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.bundle.errors import WaitTimeout
from pergola.bundle.waits import (
    States,
    polled,
    wait_deleted,
    wait_healthy,
    wait_not_progressing,
    wait_until,
)
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound

pytestmark = pytest.mark.looptime(start=0)

KEY = Key("garden", "demo")
APPLIED = {"type": "ResourcesApplied", "status": "True"}
HEALTHY = {"type": "ResourcesHealthy", "status": "True"}
PROGRESSING = {"type": "ResourcesProgressing", "status": "True"}
ROLLED_OUT = {"type": "ResourcesProgressing", "status": "False"}


class Answers(Client):
    """A client with a list of responses to consecutive `get`s."""

    def __init__(self, *answers: JsonObject | Exception) -> None:
        self._answers = list(answers)

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        assert (gvk.kind, key, metadata_only) == ("ManagedResource", KEY, False)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def resource(*conditions: JsonObject, observed: int = 1) -> JsonObject:
    status = {"observedGeneration": observed, "conditions": list(conditions)}
    return {"metadata": {"generation": 1}, "status": status}


def every_second(*seen: JsonObject | None) -> States:
    """Yield these states, one a second; after that, nothing changes."""

    async def states(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
        assert key == KEY
        for state in seen:
            await asyncio.sleep(1)
            yield state
        await asyncio.Event().wait()

    return states


async def now() -> float:
    return asyncio.get_running_loop().time()


async def test_healthy_requires_applied_and_healthy() -> None:
    ready = resource(APPLIED, HEALTHY, PROGRESSING)
    states = every_second(
        None,  # the read is retried
        resource(),
        resource(HEALTHY, APPLIED, observed=0),
        resource({**APPLIED, "status": "Progressing"}, HEALTHY),
        resource(APPLIED, {**HEALTHY, "status": "Unknown"}),
        ready,
    )
    assert await wait_healthy(Answers(), KEY, 60, states=states) is ready
    assert await now() == pytest.approx(6)


async def test_rolled_out_requires_healthy_and_not_progressing() -> None:
    ready = resource(APPLIED, HEALTHY, ROLLED_OUT)
    states = every_second(
        resource(APPLIED, HEALTHY, PROGRESSING),
        resource(APPLIED, ROLLED_OUT),
        resource(HEALTHY, ROLLED_OUT),
        ready,
    )
    assert await wait_not_progressing(Answers(), KEY, 60, states=states) is ready


async def test_other_checks_can_be_waited_for() -> None:
    def has_labels(resource: JsonObject) -> str | None:
        return None if "labels" in resource["metadata"] else "it has no labels"

    labelled: JsonObject = {"metadata": {"labels": {}}}
    states = every_second(resource(), labelled)
    assert await wait_until(Answers(), KEY, 60, has_labels, states=states) is labelled


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ([], "it was not read yet"),
        ([None], "it does not exist"),
        ([resource(APPLIED), None], "it does not exist"),
        ([None, resource(APPLIED)], "condition ResourcesHealthy is missing"),
        ([resource(observed=0)], "generation 1 was not applied yet; the last one was 0"),
    ],
)
async def test_a_timeout_reports_the_missing_conditions(
    seen: Sequence[JsonObject | None], problem: str
) -> None:
    with pytest.raises(WaitTimeout) as caught:
        await wait_healthy(Answers(), KEY, 4.5, states=every_second(*seen))
    assert str(caught.value) == f"ManagedResource garden/demo is not ready after 4.5 s: {problem}"
    assert await now() == pytest.approx(4.5)


async def test_the_wait_for_a_deletion_ends_when_the_object_is_gone() -> None:
    await wait_deleted(Answers(), KEY, 60, states=every_second(resource(APPLIED), None))
    assert await now() == pytest.approx(2)


@pytest.mark.parametrize(
    ("reason", "because"),
    [
        ("DeletionPending", ": ConfigMap a/b has finalizers"),
        ("DeletionFailed", ": ConfigMap a/b has finalizers"),
        ("ApplySucceeded", ""),
    ],
)
async def test_a_timeout_of_a_deletion_reports_the_cause(reason: str, because: str) -> None:
    message = "ConfigMap a/b has finalizers"
    deleting = resource({"type": "ResourcesApplied", "reason": reason, "message": message})
    with pytest.raises(WaitTimeout) as caught:
        await wait_deleted(Answers(), KEY, 30, states=every_second(deleting))
    assert str(caught.value) == f"ManagedResource garden/demo is not deleted after 30 s{because}"


async def test_without_permission_to_watch_it_polls_every_two_seconds() -> None:
    first, last = resource(observed=0), resource(APPLIED, HEALTHY)
    client = Answers(NotFound(404, {}), first, last)
    assert await wait_healthy(client, KEY, 60, states=polled) is last
    assert await now() == pytest.approx(4)


async def test_an_object_that_cannot_be_read_is_not_polled_again() -> None:
    async with aclosing(polled(Answers(Forbidden(403, {})), KEY)) as states:
        with pytest.raises(Forbidden):
            await anext(states)
