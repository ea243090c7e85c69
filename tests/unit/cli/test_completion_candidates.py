"""Candidates for the word at the cursor that need no cluster."""

import re
from pathlib import Path

import pytest

from pergola.api.objects import JsonValue
from pergola.cli import app
from pergola.cli.completion.candidates import candidates
from pergola.cli.completion.command import for_kubectl
from pergola.kube.yaml import dump


def words(line: str) -> list[str]:
    """Return the candidates for a line after `pergola`, without their descriptions."""
    return [each.partition("\t")[0] for each in candidates(app, line.split(" "))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("network-p", ["network-policy"]),
        ("network st", ["status"]),
        ("garden rotate e", ["etcd-encryption-key"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("why --sou", ["--source-kubeconfig"]),
        ("why -o j", ["json"]),
        ("why --output=y", ["--output=yaml"]),
        ("why --output w", []),
        ("tokens -A -o n", ["name"]),
        ("why -f ", [":files"]),
        ("why --kubeconfig ", [":files"]),
        ("manifests lint ", [":files"]),
        ("nonsense ", []),
    ],
)
def test_commands_options_values_and_files_are_completed(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_options_are_those_of_the_command() -> None:
    found = words("why --")
    assert {"--context", "--namespace", "--as-group", "--file", "--help"} <= set(found)
    assert "--selector" not in found


def test_contexts_are_those_of_the_kubeconfig_on_the_line(tmp_path: Path) -> None:
    contexts: list[JsonValue] = [{"name": name, "context": {}} for name in ("eu", "eu:2", "us")]
    path = tmp_path / "kubeconfig"
    path.write_text(dump({"contexts": contexts}))
    assert words(f"why --kubeconfig {path} --context e") == ["eu", "eu:2"]


def test_no_cluster_means_no_candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    for line in ("why ", "why -n ", "why --context ", "garden status ", "network wait "):
        assert words(line) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_short_and_asks_the_hidden_command(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["completion", shell], result_action="return_value")
    script = capsys.readouterr().out
    assert len(script.splitlines()) < 30
    assert re.search(r"__complete .*word", script)


def test_kubectl_gets_a_directive_after_the_candidates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for argument, answer in (("network-p", ["network-policy", ":4"]), ("why -f ", [":0"])):
        monkeypatch.setattr("sys.argv", ["kubectl_complete-pergola", *argument.split(" ")])
        for_kubectl()
        lines = capsys.readouterr().out.splitlines()
        assert [line.partition("\t")[0] for line in lines] == answer
