"""The output of `pergola garden why`: the answer, its causes, and the next step."""

from io import StringIO

import orjson
import pytest

from pergola.cli.answers import print_answer, print_text
from pergola.cli.safe_console import SafeConsole
from pergola.operator.reconcile.picture import State
from pergola.why import Answer
from pergola.why.health.details import Details, problem_of

POD = problem_of(
    "Pod garden/etcd-0",
    'container "etcd" crashes\n(exit code 1)',
    Details(log="[fatal] no space left", advice="read its log"),
    event="BackOff: restarting",
)
FOUND = Answer(
    name="etcd",
    state=State.RUNNING.value,
    sentence='task "Deploying etcd" runs',
    statements=(problem_of("Etcd garden/etcd", "it is not ready", Details((POD,))),),
    next_steps=("read its log",),
)


def test_causes_are_a_tree_with_events_and_logs_and_the_next_step_is_last() -> None:
    out = StringIO()
    print_text(FOUND, SafeConsole(file=out))
    assert out.getvalue() == (
        'Task "Deploying etcd" runs.\n'
        "└── Etcd garden/etcd: it is not ready\n"
        '    └── Pod garden/etcd-0: container "etcd" crashes (exit code 1)\n'
        "        ├── last event: BackOff: restarting\n"
        "        └── last log line: [fatal] no space left\n"
        "Next: read its log\n"
    )


def test_json_has_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(FOUND, "json")
    data = orjson.loads(capsys.readouterr().out)
    assert (data["state"], data["next"]) == ("running", "read its log")
    assert data["findings"][0]["causes"][0]["log"] == "[fatal] no space left"
