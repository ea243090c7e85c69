"""The output of `pergola garden plan`."""

from typing import Any

from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli.garden.plan_picture import pictures
from pergola.cli.garden.plan_text import lines
from pergola.controllers.references import Reference
from pergola.garden.components.component import Target
from pergola.operator.plan import Change, Fate, Field, Plan, Planned, Verb

FLOW = "Garden reconciliation"
SERVER = Key("garden", "server")


def changed(*fields: Field, **attributes: Any) -> Change:
    given = {"verb": Verb.CHANGE, "gvk": DEPLOYMENT, "key": SERVER, **attributes}
    return Change(fields=fields, **given)


def planned(name: str, *changes: Change, **attributes: Any) -> Planned:
    return Planned(
        **{"flow": FLOW, "name": name, "fate": Fate.RUN, "changes": changes} | attributes
    )


def printed(*tasks: Planned, everything: bool = False, **attributes: Any) -> list[str]:
    plan = Plan(garden="local", tasks=tasks, **attributes)
    return [line.text for line in lines(plan, everything=everything)]


QUIET = planned("Deploying nothing", why="nothing", unchanged=3)
SKIPPED = planned("Deploying more", fate=Fate.SKIP, why="spec.more is not set", after=("first",))


def test_only_tasks_with_changes_are_printed() -> None:
    server = planned(
        "Deploying server",
        changed(Field("spec.replicas", 1, 2), Field("spec.paused", new=True)),
        unchanged=2,
    )
    assert printed(server, QUIET, SKIPPED) == [
        "Garden reconciliation",
        "  Deploying server",
        "    ~ Deployment garden/server",
        "        spec.replicas: 1 → 2",
        "        spec.paused: (absent) → true",
        "    2 objects unchanged",
        "  of the other tasks, 1 changes nothing, 1 is skipped",
        "",
        "1 object to change",
    ]


def test_all_prints_every_task_with_reasons_and_dependencies() -> None:
    assert printed(QUIET, SKIPPED, everything=True) == [
        "Garden reconciliation",
        "  Deploying nothing: runs, nothing",
        "    3 objects unchanged",
        "  Deploying more: is skipped, spec.more is not set",
        "    after first",
        "",
        "nothing would change",
    ]


def test_only_the_differences_of_lists_and_texts_are_printed() -> None:
    arguments = Field("args", ["--a=1", "--b"], ["--a=2", "--b"])
    text = Field("data.text", "a\nb\n", "a\nc\n")
    shown = printed(planned("Deploying server", changed(arguments, text)))
    assert shown[3:9] == [
        "        args",
        '          - "--a=1"',
        '          + "--a=2"',
        "        data.text",
        "          -b",
        "          +c",
    ]


def test_objects_in_managed_resources_are_printed_below_them() -> None:
    task = planned(
        "Deploying server",
        changed(verb=Verb.CREATE, gvk=MANAGED_RESOURCE),
        changed(verb=Verb.CREATE, managed="server", cluster=Target.VIRTUAL),
        changed(Field("data", keys=("a", "b")), gvk=SECRET, managed="server"),
        waits="Deployment garden/server: it does not exist",
    )
    assert printed(task)[1:7] == [
        "  Deploying server",
        "    + ManagedResource garden/server",
        "    in ManagedResource server, virtual cluster",
        "      + Deployment garden/server",
        "      ~ Secret garden/server",
        "          data changed: keys a, b",
    ]
    assert "    would wait for Deployment garden/server: it does not exist" in printed(task)


def test_blocking_problems_are_printed_first() -> None:
    missing = (Reference("Secret", Key("garden", "backup"), "spec.backup"),)
    unknown = planned("Deploying server", fate=Fate.UNKNOWN, why="it is unreachable")
    shown = printed(unknown, missing=missing, rotations=["service account key: Prepared"])
    assert shown[:2] == [
        "Secret garden/backup (spec.backup) does not exist: the reconciliation would fail",
        "rotation in progress: service account key: Prepared",
    ]
    assert "  Deploying server: cannot be foreseen, it is unreachable" in shown
    assert shown[-1] == "1 task cannot be foreseen"


def test_json_has_no_values_of_secrets() -> None:
    task = planned("Deploying server", changed(Field("data", keys=("a",)), gvk=SECRET))
    plan = Plan(garden="local", tasks=[task]).to_json()
    assert plan["changed"] is True
    assert plan["tasks"][0]["changes"][0]["fields"] == [{"path": "data", "keys": ["a"]}]


def test_the_graph_shows_the_changes_of_each_task() -> None:
    first = planned("first", changed(verb=Verb.CREATE), changed(verb=Verb.CREATE))
    plan = Plan(garden="local", tasks=[first, SKIPPED])
    tree = pictures(plan, "tree")
    assert "would create: 2 objects" in tree
    assert "skip: spec.more is not set" in tree
    assert '"first" -> "Deploying more"' in pictures(plan, "dot")
    assert "flowchart LR" in pictures(plan, "mermaid")
