import subprocess
import sys
from pathlib import Path

import pytest

from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import GroupKind, JsonObject
from pergola.kube.yaml import dump
from pergola.testing.capi_contract.subject import SubjectError, objects, read_manifests

MANIFESTS = ["--capi-managed-manifest=m.yaml", "--capi-external-manifest=e.yaml"]
SUITE = "pergola.testing.capi_contract"


def infra_cluster(kind: str = "FooCluster", annotation: bool = False) -> JsonObject:
    annotations = {MANAGED_BY: "terraform"} if annotation else {}
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "demo", "annotations": annotations},
    }


def write(path: Path, *objs: JsonObject) -> Path:
    path.write_text("---\n".join(map(dump, objs)))
    return path


def test_the_infra_cluster_is_distinguished_from_its_dependencies(tmp_path: Path) -> None:
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "identity"}}
    managed, external = read_manifests(
        write(tmp_path / "managed.yaml", secret, infra_cluster()),
        write(tmp_path / "external.yaml", infra_cluster(annotation=True)),
    )
    assert managed.gvk.kind == "FooCluster"
    assert managed.before == (secret,)
    assert external.before == ()


def test_a_named_kind_is_selected_from_several(tmp_path: Path) -> None:
    file = write(
        tmp_path / "managed.yaml", infra_cluster("FooCluster"), infra_cluster("BarCluster")
    )
    external = write(tmp_path / "external.yaml", infra_cluster("BarCluster", annotation=True))
    managed, _ = read_manifests(file, external, "BarCluster.infrastructure.cluster.x-k8s.io")
    assert managed.gvk.group_kind == GroupKind("infrastructure.cluster.x-k8s.io", "BarCluster")
    with pytest.raises(SubjectError, match=r"exactly one object whose kind ends in Cluster .* 2"):
        read_manifests(file, external)


@pytest.mark.parametrize(
    ("managed", "external", "problem"),
    [
        (
            infra_cluster(annotation=True),
            infra_cluster(annotation=True),
            "managed.yaml: FooCluster has",
        ),
        (infra_cluster(), infra_cluster(), "external.yaml: FooCluster needs the annotation"),
        (infra_cluster(), infra_cluster("BarCluster", annotation=True), "both must be of one kind"),
        (infra_cluster("Foo"), infra_cluster(annotation=True), "managed.yaml: exactly one"),
    ],
)
def test_unsuitable_manifests_are_reported_in_one_sentence(
    managed: JsonObject, external: JsonObject, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SubjectError, match=problem):
        read_manifests(
            write(tmp_path / "managed.yaml", managed), write(tmp_path / "external.yaml", external)
        )


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a: [", "x: not valid YAML: "), ("- 1", "x, document 0: not a Kubernetes object")],
)
def test_a_text_without_objects_is_reported_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(SubjectError, match=problem):
        objects(text, "x")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "--capi-managed-manifest is missing: file with an InfraCluster that the provider"),
        (
            ["--capi-managed-manifest=no.yaml", "--capi-external-manifest=no.yaml"],
            "no.yaml cannot be",
        ),
        (
            [*MANIFESTS, "--capi-settle-seconds=soon"],
            "--capi-settle-seconds is soon, which is not a number of seconds",
        ),
    ],
)
def test_missing_and_invalid_options_are_reported_in_one_sentence(
    options: list[str], sentence: str, tmp_path: Path
) -> None:
    write(tmp_path / "m.yaml", infra_cluster())
    write(tmp_path / "e.yaml", infra_cluster(annotation=True))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", f"{SUITE}.plugin", "--pyargs", SUITE, *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 4
    assert f"ERROR: {sentence}" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
