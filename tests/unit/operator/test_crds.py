"""The CustomResourceDefinitions of a runtime cluster (spec 20 §11)."""

from importlib.resources import files
from pathlib import Path

import brotli
import orjson
import pytest

from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, maps_at, name_of
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Removable
from pergola.garden.components.crds import CRDS, tasks
from pergola.garden.components.definitions import GROUPS, SHOOT_EXTENSIONS, load
from pergola.manifests.definitions import DefinitionsMissing, Group
from tests.support.garden import landscape

NOTICE = files("pergola.garden.components.definitions") / "NOTICE.md"
SHIPPED = (*GROUPS, SHOOT_EXTENSIONS)
each_group = pytest.mark.parametrize("group", SHIPPED, ids=lambda each: each.key)
ISTIO_LABELS = {"app": "istio-pilot", "chart": "istio", "heritage": "Tiller", "release": "istio"}


def group_of(key: str) -> Group:
    [found] = [group for group in SHIPPED if group.key == key]
    return found


def schemas(definition: JsonObject) -> list[JsonObject]:
    versions = maps_at(definition, "spec", "versions")
    return [map_at(version, "schema", "openAPIV3Schema") for version in versions]


def test_no_definition_belongs_to_two_groups() -> None:
    names = [name for group in GROUPS for name in group.names]
    assert len(names) == len(set(names))
    assert len(names) == 57


@each_group
def test_a_file_has_the_definitions_of_its_group_and_no_others(group: Group) -> None:
    found = load(group)
    assert {name_of(definition) for definition in found} == group.names
    assert len(found) == len(group.names)


@each_group
def test_kubectl_can_explain_the_fields_of_definitions(group: Group) -> None:
    for definition in load(group):
        assert all(schema["type"] == "object" for schema in schemas(definition))
        assert any(b'"description"' in orjson.dumps(schema) for schema in schemas(definition))


@each_group
def test_the_notice_names_the_origin_of_a_file(group: Group) -> None:
    [row] = [line for line in NOTICE.read_text().splitlines() if f"| {group.file_name} |" in line]
    assert f"| {len(group.names)} |" in row
    assert " v" in row.split("|")[3]


@pytest.mark.parametrize("key", ["etcd", "extensions", "shoot-extensions"])
def test_definitions_of_cluster_state_are_protected_from_deletion(key: str) -> None:
    for definition in load(group_of(key)):
        assert labels_of(definition) == {"gardener.cloud/deletion-protected": "true"}


def test_helm_keeps_the_definitions_of_istio() -> None:
    for definition in load(group_of("istio")):
        assert annotations_of(definition) == {"helm.sh/resource-policy": "keep"}
        assert labels_of(definition).items() >= ISTIO_LABELS.items()


def test_the_resource_manager_keeps_the_definitions_of_the_autoscaler() -> None:
    for definition in load(group_of("vpa")):
        assert annotations_of(definition)["resources.gardener.cloud/keep-object"] == "true"


def test_missing_definitions_of_a_group_are_reported(tmp_path: Path) -> None:
    content = orjson.dumps([{"metadata": {"name": "etcds.druid.gardener.cloud"}}])
    (tmp_path / "etcd.json.br").write_bytes(brotli.compress(content))
    with pytest.raises(DefinitionsMissing, match="lacks etcdcopybackupstasks"):
        load(group_of("etcd"), tmp_path)


def test_each_group_has_a_task_that_applies_and_one_that_waits() -> None:
    assert tasks(group_of("istio")) == (
        "Deploying custom resource definitions for Istio",
        "Waiting for custom resource definitions for Istio",
    )
    assert tasks(group_of("etcd")) == (
        "Deploying ETCD-related custom resource definitions",
        "Waiting for ETCD-related custom resource definitions",
    )


def test_the_operator_applies_the_definitions_itself_before_anything_else() -> None:
    assert CATALOG[: len(GROUPS)] == tuple(CRDS.values())
    for component, group in zip(CRDS.values(), GROUPS, strict=True):
        applied = component.objects(landscape())
        assert {name_of(obj) for obj in applied.direct} == group.names
        assert applied.managed == ()
        assert component.is_setup


def test_the_resource_manager_starts_when_the_kinds_that_it_uses_are_served() -> None:
    [manager] = [each for each in CATALOG if each.name == "gardener-resource-manager"]
    assert manager.after == (
        "Waiting for ETCD-related custom resource definitions",
        "Waiting for custom resource definitions for VPA",
        "Waiting for custom resource definitions for Istio",
        "Waiting for custom resource definitions for OpenTelemetry",
    )


def test_unneeded_definitions_are_not_deleted() -> None:
    foreign = {"settings": {"verticalPodAutoscaler": {"enabled": False}}}
    built = landscape({"spec": {"runtimeCluster": foreign}})
    unneeded = [each for each in CRDS.values() if each.absent(built)]
    assert [each.name for each in unneeded] == ["vpa-crds", "pvc-autoscaler-crds"]
    assert all(each.leftovers == Removable() for each in unneeded)
