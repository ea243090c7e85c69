"""The order in which objects are applied, and the effect of failures (spec 10 §4.8, B10, B20)."""

import random

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.controllers.managed_resource.order import (
    KINDS_IN_ORDER,
    depends_on,
    rank,
    waves,
)
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.references import object_key_of
from pergola.runtime.caching.packed import pack


def planned(
    kind: str,
    name: str,
    namespace: str = "",
    api_version: str = "v1",
    spec: JsonObject | None = None,
) -> Planned:
    gvk, key = GroupVersionKind.parse(api_version, kind), Key(namespace, name)
    packed = pack({"kind": kind, "metadata": {"name": name}, "spec": spec or {}})
    return Planned(gvk, key, object_key_of(gvk, key), b"{}", b"", packed)


def crd(name: str, group: str, kind: str) -> Planned:
    return planned(
        "CustomResourceDefinition",
        f"{name}.{group}",
        api_version="apiextensions.k8s.io/v1",
        spec={"group": group, "names": {"kind": kind}},
    )


def shown(groups: list[list[Planned]]) -> list[list[str]]:
    return [[f"{p.gvk.kind} {p.key}" for p in group] for group in groups]


def test_known_kinds_are_ordered_and_others_follow_by_name() -> None:
    kinds = [*KINDS_IN_ORDER, "Alpaca", "Zebra"]
    objects = [planned(kind, "a") for kind in kinds]
    random.Random(1).shuffle(objects)  # noqa: S311 - any order will do

    assert [wave[0].gvk.kind for wave in waves(objects)] == kinds


def test_dependencies_come_first() -> None:
    order = {kind: place for place, kind in enumerate(KINDS_IN_ORDER)}

    assert len(KINDS_IN_ORDER) == 38
    assert order["PriorityClass"] < order["Namespace"] < order["ServiceAccount"] < order["Secret"]
    assert order["CustomResourceDefinition"] < order["ClusterRole"] < order["Service"]
    assert order["Service"] < order["Deployment"] < order["Job"] < order["Ingress"]
    assert max(order.values()) == order["ValidatingWebhookConfiguration"]


def test_objects_of_one_kind_form_a_wave_sorted_by_name_and_namespace() -> None:
    objects = [
        planned("ConfigMap", "b", "x"),
        planned("ConfigMap", "a", "z"),
        planned("ConfigMap", "a", "y"),
        planned("Secret", "z", "x"),
    ]

    assert shown(waves(objects)) == [
        ["Secret x/z"],
        ["ConfigMap y/a", "ConfigMap z/a", "ConfigMap x/b"],
    ]


def test_only_the_name_of_a_kind_determines_the_order() -> None:
    objects = [planned("Secret", "a"), planned("NetworkPolicy", "b", api_version="cilium.io/v2")]

    assert shown(waves(objects)) == [["NetworkPolicy b"], ["Secret a"]]
    assert rank(objects[1]) == rank(planned("NetworkPolicy", "b"))


def test_each_unknown_kind_is_a_separate_wave() -> None:
    objects = [planned("Zebra", "a"), planned("Alpaca", "z"), planned("Zebra", "0")]

    assert shown(waves(objects)) == [["Alpaca z"], ["Zebra 0", "Zebra a"]]


def test_an_empty_list_has_no_waves() -> None:
    assert waves([]) == []


NAMESPACE = planned("Namespace", "web")
THINGS = crd("things", "example.com", "Thing")


@pytest.mark.parametrize(
    ("obj", "failed", "expected"),
    [
        (planned("ConfigMap", "a", "web"), NAMESPACE, True),
        (planned("ConfigMap", "a", "other"), NAMESPACE, False),
        (planned("ClusterRole", "web"), NAMESPACE, False),
        (planned("Thing", "a", "x", "example.com/v1"), THINGS, True),
        (planned("Thing", "a", "", "example.com/v2"), THINGS, True),
        (planned("Other", "a", "x", "example.com/v1"), THINGS, False),
        (planned("Thing", "a", "x", "other.com/v1"), THINGS, False),
        (planned("ConfigMap", "a", "x"), planned("Secret", "a", "x"), False),
        (planned("Deployment", "a", "x"), planned("ServiceAccount", "a", "x"), False),
    ],
)
def test_a_failure_blocks_only_content_and_instances(
    obj: Planned, failed: Planned, expected: bool
) -> None:
    assert depends_on(obj, [planned("Secret", "z"), failed]) is expected


def test_nothing_is_blocked_without_failures() -> None:
    assert not depends_on(planned("ConfigMap", "a", "web"), [])
