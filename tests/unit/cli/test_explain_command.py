"""`pergola explain` without a cluster."""

import io
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cli.explain.command import ExplainError, explain
from pergola.kube.yaml import parse
from pergola.kube.yaml_writer import dump

EXAMPLE = Path(__file__).parents[3] / "examples" / "explain"
POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shoot"},
    "spec": {"containers": [{"name": "a"}]},
}


def manifest(folder: Path, *objects: JsonObject) -> list[Path]:
    path = folder / "manifest.yaml"
    path.write_text("---\n".join(dump(obj) for obj in objects))
    return [path]


def said(capsys: pytest.CaptureFixture[str], **arguments: Any) -> list[JsonObject]:
    """Return the JSON output, one entry for each object."""
    explain(output="json", **arguments)
    found: list[JsonObject] = orjson.loads(capsys.readouterr().out)
    return found


def outcomes(answer: JsonObject) -> dict[str, str]:
    return {
        entry["name"].removesuffix(".resources.gardener.cloud"): entry["outcome"]
        for entry in answer["webhooks"]
    }


def test_the_example_prints_the_output_in_its_readme(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"file": [EXAMPLE / "pod.yaml"], "config": EXAMPLE / "config.yaml"}
    (answer,) = said(capsys, **given)
    assert outcomes(answer) == {
        "projected-token-mount": "changed",
        "seccomp-profile": "not asked",
        "kubernetes-service-host": "unchanged",
        "system-components-config": "changed",
    }
    placed = answer["webhooks"][-1]["changes"]
    assert placed == [
        {
            "op": "add",
            "path": "/spec/nodeSelector",
            "value": {"worker.gardener.cloud/system-components": "true"},
            "because": "webhooks.systemComponentsConfig.podNodeSelector contains it",
        },
        {
            "op": "add",
            "path": "/spec/tolerations",
            "value": [
                {
                    "key": "dedicated",
                    "operator": "Equal",
                    "value": "system",
                    "effect": "NoSchedule",
                }
            ],
            "because": "a node for system components has the taint dedicated=system:NoSchedule",
        },
    ]


def test_the_text_has_each_change_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    explain(file=[EXAMPLE / "pod.yaml"], config=EXAMPLE / "config.yaml")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Pod kube-system/dns, when it is created"
    assert "  projected-token-mount changes it" in lines
    assert "      because ServiceAccount kube-system/dns does not mount its token itself" in lines
    at = lines.index("  seccomp-profile is not called")
    assert lines[at + 1] == (
        "    the object's labels do not match: !seccompprofile.resources.gardener.cloud/skip"
    )


def test_yaml_output_equals_json_output(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"file": [EXAMPLE / "pod.yaml"], "config": EXAMPLE / "config.yaml"}
    expected = said(capsys, **given)
    explain(output="yaml", **given)
    assert parse(capsys.readouterr().out) == expected


def test_all_webhooks_are_called_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (answer,) = said(capsys, file=manifest(tmp_path, POD))
    asked = {name for name, outcome in outcomes(answer).items() if outcome != "not asked"}
    assert asked >= {
        "projected-token-mount",
        "pod-scheduler-name",
        "seccomp-profile",
        "pod-kube-apiserver-load-balancing",
        "system-components-config",
        "pod-topology-spread-constraints",
    }


def test_labels_of_a_namespace_are_assumed_only_without_its_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explain(file=manifest(tmp_path, POD))
    assert "assuming that the labels of namespace shoot match" in capsys.readouterr().out
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shoot"}}
    explain(file=manifest(tmp_path, POD, namespace))
    out = capsys.readouterr().out
    assert "assuming" not in out
    assert "the namespace's labels do not match: gardener.cloud/role" in out


def test_the_kind_of_installation_selects_the_namespaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    system = POD | {"metadata": {"name": "web", "namespace": "kube-system"}}
    files = manifest(tmp_path, system, namespace)
    for installation, outcome in (("runtime", "not asked"), ("target", "changed")):
        (answer,) = said(capsys, file=files, installation=installation)
        assert outcomes(answer)["seccomp-profile"] == outcome


def test_a_refused_deletion_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": {"name": "net", "namespace": "shoot"},
    }
    (answer,) = said(capsys, file=manifest(tmp_path, network), operation="delete")
    entry = next(e for e in answer["webhooks"] if e["name"].startswith("cr-deletion-protection"))
    assert (entry["outcome"], entry["code"]) == ("refused", 403)
    assert "Network shoot/net has none" in entry["because"]


def test_lists_are_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dump({"apiVersion": "v1", "kind": "List", "items": [POD, POD]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert len(said(capsys, file=[Path("-")])) == 2


def test_all_manifests_of_a_folder_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("# Not YAML: [")
    (tmp_path / "below").mkdir()
    (tmp_path / "b.yml").write_text(dump(POD))
    (tmp_path / "a.json").write_bytes(orjson.dumps(POD))
    assert len(said(capsys, file=[tmp_path])) == 2
    with pytest.raises(ExplainError, match=r"below has no \.json, \.yaml, \.yml files"):
        explain(file=[tmp_path / "below"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: b", "document 0: is not an object with apiVersion and kind"),
        ("a: [", "document 0: "),
        ("kind: Node\napiVersion: v1\n", "no webhook reviews any object in "),
    ],
)
def test_a_file_that_cannot_be_explained_is_reported_in_one_sentence(
    content: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(ExplainError) as error:
        explain(file=[path])
    assert problem in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_and_missing_arguments_are_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExplainError, match=r"cannot read .*x\.yaml: No such file"):
        explain(file=[tmp_path / "x.yaml"])
    with pytest.raises(ExplainError, match="nothing to explain: name an object such as pod/web"):
        explain()
