import datetime as dt
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, name_of
from pergola.bundle.errors import DuplicateObject, InvalidObject
from pergola.bundle.managed_resource import build
from pergola.bundle.registry import Registry, file_name
from pergola.kube.yaml import parse_documents


def obj(kind: str, name: str, namespace: str = "", **fields: Any) -> JsonObject:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


CONFIG_MAPS = st.lists(
    st.builds(
        lambda name, namespace, data: obj("ConfigMap", name, namespace, data=data),
        st.text("abc:-", min_size=1, max_size=4),
        st.sampled_from(["", "x", "y"]),
        st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
    ),
    unique_by=lambda o: (o["metadata"]["name"], o["metadata"].get("namespace")),
    max_size=6,
)


def content(registry: Registry) -> list[object]:
    stream = brotli.decompress(registry.serialize()["data.yaml.br"])
    documents = list(parse_documents(stream))
    assert not any(document.error for document in documents)
    return [document.value for document in documents if document.value is not None]


@given(CONFIG_MAPS, st.randoms())
def test_the_order_of_additions_changes_neither_bytes_nor_names(
    objects: list[JsonObject], random: Any
) -> None:
    shuffled = list(objects)
    random.shuffle(shuffled)
    one, other = Registry(*objects), Registry(*shuffled)
    assert one.serialize() == other.serialize()
    assert build("ns", "demo", one) == build("ns", "demo", other)


@given(CONFIG_MAPS)
def test_written_objects_are_read_as_they_were_added(objects: list[JsonObject]) -> None:
    def by_name(o: Any) -> Any:
        return o["metadata"]["name"], o["metadata"].get("namespace", "")

    assert sorted(content(Registry(*objects)), key=by_name) == sorted(objects, key=by_name)


def test_keys_are_sorted_so_that_the_order_of_fields_does_not_matter() -> None:
    forth = {
        "apiVersion": "v1",
        "kind": "A",
        "metadata": {"name": "n", "labels": {"a": "", "b": ""}},
    }
    back = {
        "metadata": {"labels": {"b": "", "a": ""}, "name": "n"},
        "kind": "A",
        "apiVersion": "v1",
    }
    assert Registry(forth).serialize() == Registry(back).serialize()


def test_changed_content_has_another_name() -> None:
    before = build("ns", "demo", Registry(obj("ConfigMap", "a", data={"k": "1"})))
    after = build("ns", "demo", Registry(obj("ConfigMap", "a", data={"k": "2"})))
    assert name_of(before.secrets[0]) != name_of(after.secrets[0])


def test_documents_are_sorted_by_file_name_and_separated_by_hyphens() -> None:
    registry = Registry(obj("Secret", "a"), obj("ConfigMap", "z", "ns"), obj("ConfigMap", "a"))
    assert brotli.decompress(registry.serialize()["data.yaml.br"]).decode() == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
        "---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: z\n  namespace: ns\n"
        "---\n"
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
    )


@pytest.mark.parametrize(
    ("manifest", "name"),
    [
        (obj("ConfigMap", "greeting", "ns"), "/v1, kind=configmap__ns__greeting.yaml"),
        (
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "system:Viewer"},
            },
            "rbac.authorization.k8s.io/v1, kind=clusterrole____system_Viewer.yaml",
        ),
    ],
)
def test_file_names_contain_kind_namespace_and_name(manifest: JsonObject, name: str) -> None:
    assert file_name(manifest) == name


def test_nothing_is_skipped() -> None:
    registry = Registry(None, obj("ConfigMap", "a"), None)
    registry.add(None)
    assert len(registry) == 1


def test_a_duplicate_object_is_reported() -> None:
    registry = Registry(obj("ConfigMap", "a", "ns"))
    registry.add(obj("ConfigMap", "a", "other"), obj("Secret", "a", "ns"))
    with pytest.raises(DuplicateObject, match="ConfigMap ns/a is described twice"):
        registry.add(obj("ConfigMap", "a", "ns"))


def test_names_that_differ_only_in_colons_are_different_objects() -> None:
    registry = Registry(obj("ClusterRole", "a:b"), obj("ClusterRole", "a_b"))
    assert [name_of(o) for o in content(registry) if isinstance(o, dict)] == ["a:b", "a_b"]


@pytest.mark.parametrize(
    "manifest",
    [{}, obj("", "a"), obj("ConfigMap", ""), {**obj("ConfigMap", "a"), "apiVersion": ""}],
)
def test_an_object_without_an_identity_is_refused(manifest: JsonObject) -> None:
    with pytest.raises(InvalidObject, match=r"object number 2 .* needs apiVersion"):
        Registry(obj("ConfigMap", "first"), manifest)


@pytest.mark.parametrize("value", [{1, 2}, object(), 2**70, {1: "one"}])
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(
        InvalidObject, match="ConfigMap ns/a has a value that JSON cannot represent"
    ):
        Registry(obj("ConfigMap", "a", "ns", data=value))


def test_dates_parsed_by_yaml_libraries_become_text() -> None:
    registry = Registry(obj("ConfigMap", "a", data={"day": dt.date(2001, 12, 14)}))
    assert content(registry) == [obj("ConfigMap", "a", data={"day": "2001-12-14"})]


def test_later_changes_of_an_added_object_have_no_effect() -> None:
    changing = obj("ConfigMap", "a", data={"k": "before"})
    registry = Registry(changing)
    changing["data"]["k"] = "after"
    assert content(registry) == [obj("ConfigMap", "a", data={"k": "before"})]
