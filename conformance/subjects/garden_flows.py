"""The tasks of a Garden's flows, and the state of its rotations after a reconciliation."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import ABSENT, Difference, differences
from conformance.documents import client_of
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.whole_gardens import GARDENS, some_garden
from conformance.subjects.garden_objects import landscape_for
from conformance.subjects.rotations import PARTS, PHASES, some_rotations
from pergola.api.objects import JsonObject, JsonValue, Key, map_at, without_empty
from pergola.api.operator_v1alpha1 import default_garden, garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.compare import PRESENT, Recorded
from pergola.operator.reconcile import flow_delete, flows
from pergola.operator.reconcile.operation import beginning, requested_by, success
from pergola.operator.reconcile.picture.steps import dry_run
from pergola.runtime.clock import FakeClock


class GardenFlows:
    """A reconciliation or a deletion of a Garden: its tasks, and its status afterwards."""

    name = "garden-flows"
    ask = "garden-flows"
    title = "Tasks of a Garden's flows, and the end of rotations"
    of: OracleModule = GARDENER
    code = ("pergola.operator.reconcile.flows", "pergola.operator.rotation.phases")

    def table(self) -> Iterator[JsonObject]:
        """Yield Gardens of all kinds, and rotations in each phase."""
        for asked in GARDENS[:12]:
            yield from (_question(asked, {}, deleted=deleted) for deleted in (False, True))
        for phase in PHASES:
            rotation = {"phase": phase, "lastInitiationTime": "2026-01-01T00:00:00Z"}
            yield _question(GARDENS[0], dict.fromkeys(PARTS, rotation), deleted=False)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Gardens with random options, in the course of rotations."""
        return st.builds(
            lambda asked, rotations, deleted: _question(asked, rotations, deleted=deleted),
            some_garden(),
            some_rotations(),
            st.booleans(),
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the whole answer."""
        return answer.output

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the names of the tasks, and the status."""
        if not isinstance(answer.value, list):
            yield Difference("answer", str(answer.value), PRESENT)
            return
        theirs = {each for each in answer.value if isinstance(each, str)}
        ours = _tasks(question)
        for name in sorted(theirs - ours):
            yield Difference(name, PRESENT, ABSENT)
        for name in sorted(ours - theirs):
            yield Difference("more", ABSENT, name)
        if not question["deleted"]:
            yield from differences(without_empty(answer.value[-1]), _end(question))


def _question(asked: JsonObject, rotations: JsonObject, *, deleted: bool) -> JsonObject:
    garden = {**asked["garden"], "status": {**asked["garden"]["status"]}}
    credentials = map_at(garden, "status", "credentials")
    garden["status"]["credentials"] = {**credentials, "rotation": rotations}
    # No resource manager removes what the original does not wait for.
    beside = [
        each for each in asked["beside"] if not (deleted and each["kind"] == "ManagedResource")
    ]
    return {**asked, "garden": garden, "beside": beside, "deleted": deleted}


def _tasks(question: JsonObject) -> set[str]:
    landscape = landscape_for(question, default_garden(question["garden"]), Recorded())
    run = dry_run(client_of([]), landscape, FakeClock(_now(question)))
    graphs = (
        [flow_delete.deletion(run)]
        if question["deleted"]
        else [flows.setup(run), flows.reconciliation(run, Key.of(question["garden"]))]
    )
    return {f"{graph.name}: {task.name}" for graph in graphs for task in graph}


def _end(question: JsonObject) -> JsonValue:
    obj = default_garden(question["garden"])
    now = _now(question)
    begun = _patched(obj, beginning(garden_from(obj), requested_by(obj), now))
    ended = _patched(begun, success(garden_from(begun), now))
    credentials: JsonValue = without_empty(ended["status"]["credentials"])
    return credentials


def _patched(garden: JsonObject, status: JsonObject) -> JsonObject:
    return {**garden, "status": apply_merge_patch(garden["status"], status)}


def _now(question: JsonObject) -> datetime:
    return datetime.fromisoformat(question["now"])
