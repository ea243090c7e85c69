"""The `pergola sandbox` command as users run it."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pergola.cli.sandbox import app


@pytest.fixture
def name() -> Iterator[str]:
    name = f"command-{secrets.token_hex(4)}"
    yield name
    run("stop", "--name", name)


def run(*words: str) -> int:
    try:
        app(words, exit_on_error=False)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_sandbox_runs_from_start_to_stop(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("start", "--name", name) == 0
    ready, export = capsys.readouterr().out.splitlines()
    assert ready.startswith(f'sandbox "{name}" is ready: https://127.0.0.1:')

    assert run("kubeconfig", "--name", name) == 0
    kubeconfig = capsys.readouterr().out.strip()
    assert export == f"export KUBECONFIG={kubeconfig}"
    assert Path(kubeconfig).is_file()

    assert run("start", "--name", name) == 0
    assert capsys.readouterr().out.splitlines() == [ready, export]

    assert run("status", "--name", name) == 0
    assert capsys.readouterr().out.count("running") == 5
    assert run("status", "--name", name, "-o", "json") == 0
    state = orjson.loads(capsys.readouterr().out)
    assert (state["name"], state["kubeconfig"]) == (name, kubeconfig)
    assert [each["state"] for each in state["components"]] == ["running"] * 5

    assert run("stop", "--name", name) == 0
    assert capsys.readouterr().out == f'sandbox "{name}" is stopped\n'
    assert not Path(kubeconfig).exists()


@pytest.mark.parametrize("command", ["status", "kubeconfig"])
def test_commands_report_a_stopped_sandbox_in_one_sentence(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "--name", name) == 1

    start = f"pergola sandbox start --name {name}"
    expected = f'error: no sandbox "{name}" is running; start it with `{start}`'
    assert capsys.readouterr().err == f"{expected}\n"
