"""The versions of what runs in a cluster, as its Deployments tell."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.cli.processes import Process, process_of
from pergola.cli.version import skew

DIGEST = "sha256:" + "0" * 64


def deployment(
    image: str, *command: str, name: str = "web", labels: dict[str, str] | None = None
) -> JsonObject:
    container: dict[str, Any] = {"image": image, "command": [*command[:2]], "args": command[2:]}
    return {
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": labels or {}}, "spec": {"containers": [container]}},
        },
        "status": {"readyReplicas": 1},
    }


def found(obj: JsonObject) -> Process:
    process = process_of(obj)
    assert process is not None
    return process


@pytest.mark.parametrize(
    ("obj", "component", "version", "is_pergola"),
    [
        (
            deployment("registry:5000/x/pergola:v0.2.0", "pergola", "operator", "--config=a"),
            "operator",
            "0.2.0",
            True,
        ),
        (
            deployment(f"x/mirror:1@{DIGEST}", "/bin/pergola", "extension", "run", "aws"),
            "extension run aws",
            "1",
            True,
        ),
        (
            deployment(
                f"x/pergola@{DIGEST}",
                name="gardener-resource-manager",
                labels={"app.kubernetes.io/version": "0.3.0"},
            ),
            "resource-manager",
            "0.3.0",
            True,
        ),
        (
            deployment("gardener/operator:v1.150.0", name="gardener-operator"),
            "operator",
            "1.150.0",
            False,
        ),
        (deployment(f"x/pergola@{DIGEST}"), "web", "", True),
    ],
)
def test_processes_are_recognized_by_command_image_and_name(
    obj: JsonObject, component: str, version: str, is_pergola: bool
) -> None:
    process = found(obj)
    assert process[:1] + process[2:3] + process[4:5] == (component, version, is_pergola)
    assert (process.ready, process.replicas) == (1, 2)


def test_other_deployments_are_left_out() -> None:
    assert process_of(deployment("nginx:1", "nginx")) is None
    assert process_of({"metadata": {"name": "empty"}}) is None


def test_the_same_version_is_one_sentence() -> None:
    same = found(deployment("x/pergola:0.1.0"))
    assert skew([same, same], "0.1.0") == "2 of 2 run 0.1.0, as this command"


def test_other_versions_are_named() -> None:
    old = found(deployment("x/pergola:0.0.9", name="old"))
    digest = found(deployment(f"x/pergola@{DIGEST}"))
    said = skew([old, digest, found(deployment("x/pergola:0.1.0"))], "0.1.0")
    assert said.startswith("1 of 3 run another version than this command, 0.1.0: ")
    assert "garden/old runs 0.0.9; 1 without a version" in said


def test_originals_are_not_compared() -> None:
    original = found(deployment("gardener/operator:v1.150.0", name="gardener-operator"))
    assert skew([original], "0.1.0") == "no process of Pergola was found in the cluster"
