"""The CustomResourceDefinitions of a runtime cluster (spec 20 §11)."""

from pathlib import Path

import brotli
import orjson
import pytest

from pergola.api.objects import name_of
from pergola.operator.components.component import Removable
from pergola.operator.components.crds import GROUPS, DefinitionsMissing, components, load
from pergola.testing.garden import landscape


def write(directory: Path, key: str, *names: str) -> None:
    definitions = [{"metadata": {"name": name}} for name in names]
    (directory / f"{key}.json.br").write_bytes(brotli.compress(orjson.dumps(definitions)))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for group in GROUPS:
        write(tmp_path, group.key, *sorted(group.names))
    return tmp_path


def test_no_definition_belongs_to_two_groups() -> None:
    names = [name for group in GROUPS for name in group.names]
    assert len(names) == len(set(names))
    assert len(names) == 57


def test_each_group_has_a_task_that_applies_it_and_one_that_waits() -> None:
    tasks = {group.key: group.tasks for group in GROUPS}
    assert tasks["istio"] == (
        "Deploying custom resource definitions for Istio",
        "Waiting for custom resource definitions for Istio",
    )
    assert tasks["etcd"] == (
        "Deploying ETCD-related custom resource definitions",
        "Waiting for ETCD-related custom resource definitions",
    )


def test_a_group_without_all_its_definitions_is_an_error_that_names_them(tmp_path: Path) -> None:
    [etcd] = [group for group in GROUPS if group.key == "etcd"]
    write(tmp_path, "etcd", "etcds.druid.gardener.cloud")
    with pytest.raises(DefinitionsMissing, match="lacks etcdcopybackupstasks"):
        load(etcd, tmp_path)


def test_components_apply_the_definitions_themselves(directory: Path) -> None:
    for component, group in zip(components(directory), GROUPS, strict=True):
        applied = component.objects(landscape())
        assert {name_of(obj) for obj in applied.direct} == group.names
        assert applied.managed == ()
        assert component.is_setup


def test_definitions_that_a_garden_does_not_need_are_left_alone(directory: Path) -> None:
    foreign = {"settings": {"verticalPodAutoscaler": {"enabled": False}}}
    built = landscape({"spec": {"runtimeCluster": foreign}})
    unneeded = [each for each in components(directory) if each.absent(built)]
    assert [each.name for each in unneeded] == ["vpa-crds", "pvc-autoscaler-crds"]
    assert all(each.leftovers == Removable() for each in unneeded)
