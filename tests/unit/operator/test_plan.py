"""Plans of Gardens: the descriptions of tasks, and the planned Garden."""

from datetime import UTC, datetime
from unittest.mock import create_autospec

from pergola.api.objects import Key
from pergola.garden.components.catalog import CATALOG
from pergola.operator.plan.given import stored
from pergola.operator.plan.sentences import SENTENCES
from pergola.operator.reconcile import flows
from pergola.operator.run.run import Run

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = create_autospec(Run, instance=True)
MANIFEST = {
    "kind": "Garden",
    "metadata": {"name": "local", "labels": {"new": "1"}},
    "spec": {"new": True},
}


def test_every_task_outside_of_components_has_a_description() -> None:
    graphs = (flows.setup(RUN), flows.reconciliation(RUN, Key("", "garden")))
    own = {name for component in CATALOG for name in (component.deploy, component.wait)}
    tasks = {task.name for graph in graphs for task in graph} - own
    assert tasks <= SENTENCES.keys()


def test_a_manifest_is_planned_with_the_metadata_and_status_of_the_live_garden() -> None:
    live = {
        "metadata": {"name": "local", "uid": "u", "labels": {"old": "1"}, "finalizers": ["f"]},
        "spec": {"old": True},
        "status": {"observedGeneration": 1},
    }
    assert stored(MANIFEST, live, NOW) == {
        "kind": "Garden",
        "metadata": {
            "name": "local",
            "uid": "u",
            "labels": {"old": "1", "new": "1"},
            "finalizers": ["f"],
        },
        "spec": {"new": True},
        "status": {"observedGeneration": 1},
    }


def test_a_new_garden_gets_the_fields_that_a_server_would_set() -> None:
    metadata = stored(MANIFEST, None, NOW)["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["labels"] == {"new": "1"}
