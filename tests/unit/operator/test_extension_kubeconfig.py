"""The kubeconfig of the virtual cluster in workloads of admission charts (spec 21 §13.2.2)."""

import copy
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject, annotations_of, map_at
from pergola.operator.extension.garden_kubeconfig import with_kubeconfig

FOLDER: Final = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
POD: Final[JsonObject] = {
    "metadata": {},
    "spec": {
        "initContainers": [{"name": "first"}],
        "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}],
    },
}


def workload(api_version: str, kind: str, **spec: Any) -> JsonObject:
    spec = spec or {"template": POD}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (workload("apps/v1", "Deployment"), ("spec", "template")),
        (workload("apps/v1", "StatefulSet"), ("spec", "template")),
        (workload("batch/v1", "Job"), ("spec", "template")),
        (
            workload("batch/v1", "CronJob", jobTemplate={"spec": {"template": POD}}),
            ("spec", "jobTemplate", "spec", "template"),
        ),
    ],
)
def test_all_containers_of_a_workload_get_it(obj: JsonObject, path: tuple[str, ...]) -> None:
    before = copy.deepcopy(obj)

    changed = with_kubeconfig(obj, "generic", "access")

    assert obj == before
    spec = map_at(changed, *path, "spec")
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["env"][-1] == {
            "name": "GARDEN_KUBECONFIG",
            "value": f"{FOLDER}/kubeconfig",
        }
        [mount] = container["volumeMounts"]
        assert (mount["name"], mount["mountPath"]) == ("garden-kubeconfig", FOLDER)
    assert spec["containers"][0]["env"][0] == {"name": "A", "value": "1"}
    [volume] = spec["volumes"]
    names = [source["secret"]["name"] for source in volume["projected"]["sources"]]
    assert names == ["generic", "access"]
    # The garbage collector sees that the immutable Secret is in use.
    assert "generic" in annotations_of(map_at(changed, *path)).values()


def test_workloads_that_set_the_variable_are_unchanged() -> None:
    own = {"name": "GARDEN_KUBECONFIG", "value": "/own"}
    pod: JsonObject = {"spec": {"containers": [{"name": "a"}, {"name": "b", "env": [own]}]}}
    obj = workload("apps/v1", "Deployment", template=pod)

    assert with_kubeconfig(obj, "generic", "access") == obj


def test_other_objects_are_unchanged() -> None:
    for obj in (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        workload("monitoring.coreos.com/v1", "Prometheus"),
    ):
        assert with_kubeconfig(obj, "generic", "access") == obj
