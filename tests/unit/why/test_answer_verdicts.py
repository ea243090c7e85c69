"""The verdict of an answer: good news only if no explainer found anything wrong."""

import itertools
from typing import Any, Final, cast

import pytest

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.why import Part, Statement, Topic
from pergola.why.engine import explain_object
from pergola.why.explainer import Explainer

LAKE: Final[JsonObject] = {
    "apiVersion": "example.org/v1",
    "kind": "Lake",
    "metadata": {"name": "como", "uid": "1"},
}
STATES: Final = ("Pending", "Processing", "Succeeded", "Error", "Failed", "Aborted", None)
ERROR: Final = {"description": "no quota"}
CONDITION: Final = {"type": "CertificatesValid", "status": "False", "reason": "Late", "message": ""}


def saying(part: Part) -> Explainer:
    async def explain(_asked: object, _reader: object) -> Part:
        return part

    return Explainer("test", lambda _: True, explain)


async def verdict(obj: JsonObject, *parts: Part) -> str:
    """Return the answer without the name; nothing is read from a cluster."""
    answer = await explain_object(cast("Client", None), obj, [saying(part) for part in parts])
    return answer.sentence.split(" ", 2)[2]


def garden(
    state: str | None, errors: list[Any], conditions: list[Any], observed: int
) -> JsonObject:
    operation = {"type": "Reconcile", "state": state, "progress": 40, "description": "so far"}
    return {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Garden",
        "metadata": {"name": "local", "uid": "1", "generation": 2},
        "status": {
            **({"lastOperation": operation} if state else {}),
            "lastErrors": errors,
            "conditions": conditions,
            "observedGeneration": observed,
        },
    }


@pytest.mark.parametrize("topic", [Topic.PROBLEM, Topic.WAITS])
async def test_good_news_gives_way_to_the_verdict_about_a_problem(topic: Topic) -> None:
    good = Part(sentence="is healthy", statements=(Statement(topic=Topic.DECIDED, text="done"),))
    trouble = (Statement(topic=topic, text="something"),)
    assert await verdict(LAKE, good) == "is healthy"
    assert await verdict(LAKE, good, Part(sentence="leaks", statements=trouble)) == "leaks"
    without_words = await verdict(LAKE, good, Part(statements=trouble))
    assert without_words in ("is not as it should be", "is not ready yet")


async def test_an_object_that_is_not_in_the_cluster_does_not_exist() -> None:
    fresh = {**LAKE, "metadata": {"name": "como"}}
    assert (await verdict(LAKE)).startswith("exists, and nothing")
    assert (await verdict(fresh)).startswith("does not exist yet, and nothing")


@pytest.mark.parametrize(
    ("state", "errors", "conditions", "observed"),
    [*itertools.product(STATES, ([], [ERROR]), ([], [CONDITION]), (1, 2))],
)
async def test_only_a_reconciled_garden_without_problems_is_healthy(
    state: str | None, errors: list[Any], conditions: list[Any], observed: int
) -> None:
    found = await verdict(garden(state, errors, conditions, observed))
    is_good = state == "Succeeded" and not errors and not conditions and observed == 2
    assert (found == "is reconciled and healthy") is is_good
    if errors or conditions or state in ("Error", "Failed", "Aborted"):
        assert found == "is not as it should be"
