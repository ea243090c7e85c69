"""`pergola manifests` on files."""

import io
import sys
from pathlib import Path

import orjson
import pytest

from pergola.bundle.lint import RULES, LintError
from pergola.cli.manifests import ManifestsError, lint, rules

GOOD = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: default}}
---
"""
BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: default}
roleRef: {kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: a, namespace: default}]
"""


def file(folder: Path, content: str, name: str = "manifests.yaml") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def test_valid_manifests_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint([file(tmp_path, GOOD)])
    assert capsys.readouterr().out == f"checked 2: all follow the {len(RULES)} house rules\n"


def test_violations_are_printed_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        lint([file(tmp_path, GOOD), file(tmp_path, BINDING, "binding.yaml")])
    assert capsys.readouterr().out == (
        "RoleBinding default/a roleRef.name: binds cluster-admin; bind a role with only the "
        "necessary permissions (cluster-admin)\n"
    )


def test_json_output_has_every_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(BINDING.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(SystemExit, match="1"):
        lint([Path("-"), file(tmp_path, GOOD)], output="json")
    (found,) = orjson.loads(capsys.readouterr().out)
    assert found["rule"] == "cluster-admin"
    assert found["object"] == "RoleBinding default/a"
    assert found["path"] == "roleRef.name"


def test_json_without_violations_is_an_empty_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lint([file(tmp_path, GOOD)], output="json")
    assert orjson.loads(capsys.readouterr().out) == []


def test_a_file_lists_exceptions_and_options_name_external_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allow = file(tmp_path, "cluster-admin RoleBinding default/a: it is a demo\n", "allow.yaml")
    lint([file(tmp_path, BINDING)], allow=allow, external=["ServiceAccount default/*"])
    assert capsys.readouterr().out.startswith("checked 1: all follow")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("- text", r"manifests\.yaml, document 0: is not an object"),
        ("a: {", r"manifests\.yaml, document 0: line"),
    ],
)
def test_a_malformed_manifest_is_reported_with_its_position(
    tmp_path: Path, content: str, problem: str
) -> None:
    with pytest.raises(ManifestsError, match=problem):
        lint([file(tmp_path, content)])


@pytest.mark.parametrize(
    ("content", "problem"), [("[]", "must be a map"), ("probes X a/b: 1", "must be a text")]
)
def test_exceptions_must_be_a_map_of_reasons(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(ManifestsError, match=problem):
        lint([file(tmp_path, GOOD)], allow=file(tmp_path, content, "allow.yaml"))


def test_an_exception_from_an_unknown_rule_is_refused(tmp_path: Path) -> None:
    allow = file(tmp_path, "nothing X a/b: why", "allow.yaml")
    with pytest.raises(LintError, match="names no rule"):
        lint([file(tmp_path, GOOD)], allow=allow)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ManifestsError, match=r"cannot read .*gone\.yaml: No such file"):
        lint([tmp_path / "gone.yaml"])


def test_all_rules_are_printed_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    rules()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["RULE", *(rule.id for rule in RULES)]
