"""A landscape equals itself, and every change is reported."""

import os
from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import OperatorConfiguration
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Target
from pergola.kube.equality import Difference
from pergola.operator.compare import (
    Placed,
    compare,
    from_objects,
    from_rows,
    landscape_of,
    rendered,
)
from pergola.operator.compare.comparison import KEPT_BY
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks
from tests.support.garden import GARDEN

WILDCARD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "wildcard",
        "namespace": "garden",
        "labels": {"gardener.cloud/role": "garden-cert"},
    },
    "data": {"tls.crt": "YQ==", "tls.key": "YQ=="},
}
USERS = (GARDEN, WILDCARD)
TEMPLATE = template(OperatorConfiguration(), images(os.environ), "1.34.1", garden_webhooks)


def service(name: str = "web", managed: str = "", component: str = "", **spec: Any) -> Placed:
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {"ports": [{"name": "web", "port": 80}], **spec},
    }
    return Placed(Target.RUNTIME, managed, component, obj)


@pytest.fixture(scope="module")
def ours() -> list[Placed]:
    """All objects of a Garden, rendered from a dump of only its user's objects."""
    dump = from_objects(USERS)
    return rendered(landscape_of(GARDEN, dump, TEMPLATE, CATALOG), CATALOG)


def test_a_garden_is_rendered_without_a_cluster_and_without_keys(ours: list[Placed]) -> None:
    kinds = {each.identity.kind.kind for each in ours}

    assert {"Deployment", "Etcd", "ManagedResource", "Secret", "ClusterRole"} <= kinds
    assert len(ours) > 500


def test_a_dump_of_rendered_objects_equals_them(ours: list[Placed]) -> None:
    dump = from_objects([*USERS, *(each.obj for each in ours if not each.managed)])
    here = rendered(landscape_of(GARDEN, dump, TEMPLATE, CATALOG), CATALOG)

    found = compare(dump.made_for(GARDEN), here)

    assert dump.problems == []
    assert (found.only_there, found.only_here, found.differing) == ([], [], [])
    assert found.equal == len({each.identity for each in here})


def test_rows_without_texts_equal_the_rendered_objects(ours: list[Placed]) -> None:
    dump = from_rows([_row(each) for each in ours])

    found = compare(dump.objects, ours, has_texts=dump.has_texts)

    assert (found.only_there, found.only_here, found.differing) == ([], [], [])


def test_objects_on_only_one_side_are_reported() -> None:
    found = compare([service("a"), service("b")], [service("b"), service("c")])

    assert [str(each.identity) for each in found.only_there] == ["Service garden/a"]
    assert [str(each.identity) for each in found.only_here] == ["Service garden/c"]
    assert found.equal == 1
    assert not found.is_equal


def test_every_different_field_is_reported_with_both_values() -> None:
    there, here = service(clusterIP="None"), service(type="NodePort", clusterIP="10.0.0.1")

    (found,) = compare([there], [here]).differing

    assert found.fields == (
        Difference("headless", one=True, other=False),
        Difference("spec.clusterIP", "None", "10.0.0.1"),
        Difference("spec.type", None, "NodePort"),
    )


def test_an_object_that_moved_to_a_managed_resource_is_the_same_object() -> None:
    (found,) = compare([service()], [service(managed="web")]).differing

    assert found.fields == (Difference(KEPT_BY, "the operator", "ManagedResource web"),)


def test_an_object_in_a_managed_resource_is_compared_by_its_manifest() -> None:
    there = [service(type="NodePort"), service(managed="web")]

    assert compare(there, [service(managed="web")]).is_equal


def test_generations_of_a_unique_object_are_compared_as_one() -> None:
    there = [service("web-00000001"), service("web-00000002")]

    assert compare(there, [service("web-00000003")]).is_equal


def test_a_text_that_the_dump_lacks_is_not_a_difference() -> None:
    short, long = service(externalName="short"), service(externalName="x" * 200)

    assert compare([long], [short], has_texts=False).is_equal
    assert not compare([long], [short]).is_equal


def test_differences_can_be_filtered_by_component_and_managed_resource() -> None:
    there = [service("a", managed="logs"), service("b", managed="web")]
    here = [service("c", component="vpa")]

    found = compare(there, here)

    assert found.groups == ["ManagedResource logs", "ManagedResource web", "component vpa"]
    assert found.of_groups(["logs", "vpa"]).groups == ["ManagedResource logs", "component vpa"]


def test_references_of_the_garden_are_taken_from_the_dump() -> None:
    address = service("gardener-apiserver", clusterIP="10.0.0.7").obj

    found = landscape_of(GARDEN, from_objects([WILDCARD, address]), TEMPLATE, CATALOG)

    assert found.wildcard_certificate == WILDCARD
    assert found.gardener_api_server_address == "10.0.0.7"


def test_etcds_keep_their_live_schedules() -> None:
    schedule = "5 21 * * *"
    etcd: JsonObject = {
        "apiVersion": "druid.gardener.cloud/v1alpha1",
        "kind": "Etcd",
        "metadata": {"name": "virtual-garden-etcd-main", "namespace": "garden"},
        "spec": {"etcd": {"defragmentationSchedule": schedule}},
    }
    dump = from_objects([*USERS, etcd])

    here = rendered(landscape_of(GARDEN, dump, TEMPLATE, CATALOG), CATALOG, dump.all)

    (found,) = (
        each.obj for each in here if str(each.identity) == "Etcd garden/virtual-garden-etcd-main"
    )
    assert found["spec"]["etcd"]["defragmentationSchedule"] == schedule


def test_namespaces_and_definitions_of_other_programs_are_not_compared() -> None:
    others: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.org"},
        },
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "etcds.druid.gardener.cloud"},
        },
    ]

    dump = from_objects(others)

    assert [str(each.identity) for each in dump.objects] == [
        "CustomResourceDefinition etcds.druid.gardener.cloud"
    ]
    assert dump.ignored == {"objects of other programs": 2}


def _row(placed: Placed) -> JsonObject:
    metadata, key = placed.obj["metadata"], Key.of(placed.obj)
    where = f"{placed.cluster.value} cluster"
    if placed.managed:
        where += f", ManagedResource {placed.managed}"
    fields = {name: value for name, value in placed.obj.items() if name != "metadata"}
    if placed.obj["kind"] in ("Secret", "ConfigMap"):
        fields["data"] = [*fields.get("data", {})]
    beside = {name: metadata.get(name, {}) for name in ("labels", "annotations")}
    return {"where": where, "namespace": key.namespace, "name": key.name, **beside, **fields}
