"""Decoding of documents in Secrets into objects (spec 10 §4.3)."""

import hashlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import GroupVersionKind, JsonObject, name_of, namespace_of
from pergola.bundle.content import Budget
from pergola.resource_manager.controllers.managed_resource.conditions import errors_message
from pergola.resource_manager.controllers.managed_resource.decode import (
    Decoded,
    SecretData,
    decode,
)

CLUSTER_SCOPED = {"ClusterRole", "Namespace"}


def scope(gvk: GroupVersionKind) -> bool | None:
    return None if gvk.group.endswith("example.com") else gvk.kind not in CLUSTER_SCOPED


def decoded(data: dict[str, bytes], *more: dict[str, bytes]) -> Decoded:
    return decode([SecretData(f"s{i}", d) for i, d in enumerate((data, *more))], scope)


def config_map(name: str, extra: str = "") -> bytes:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: ns\n{extra}"
    ).encode()


def names(result: Decoded) -> list[str]:
    return [name_of(obj) for obj in result.objects]


def only(result: Decoded) -> JsonObject:
    (obj,) = result.objects
    return obj


# Must hold


def test_plain_and_compressed_values_are_read() -> None:
    result = decoded({"a.yaml": config_map("a"), "b.yaml.br": brotli.compress(config_map("b"))})

    assert names(result) == ["a", "b"]
    assert result.errors == []


def test_two_documents_of_one_key_are_two_objects() -> None:
    result = decoded(
        {
            "objects.yaml": b"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
"""
        }
    )

    assert [(namespace_of(obj), name_of(obj)) for obj in result.objects] == [
        ("default", "one"),
        ("default", "two"),
    ]


def test_a_changed_comment_changes_the_checksum() -> None:
    one = decoded({"a": config_map("a")})
    other = decoded({"a": config_map("a") + b"# why\n"})

    assert one.objects == other.objects
    assert one.checksum != other.checksum


@pytest.mark.parametrize(
    ("api_version", "kind", "given_namespace", "expected"),
    [
        ("apps/v1", "Deployment", "", "default"),
        ("apps/v1", "Deployment", "ns", "ns"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "ns", ""),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "", ""),
        ("v1", "Namespace", "", ""),
        ("example.com/v1", "Thing", "", "default"),
        ("example.com/v1", "Thing", "ns", "ns"),
        ("example.com/v1", "Namespace", "", ""),
    ],
)
def test_namespaces_are_set_by_the_scope_of_the_kind(
    api_version: str, kind: str, given_namespace: str, expected: str
) -> None:
    namespace = f", namespace: {given_namespace}" if given_namespace else ""
    text = f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a{namespace}}}}}"

    obj = only(decoded({"a": text.encode()}))

    assert namespace_of(obj) == expected
    assert expected or "namespace" not in obj["metadata"]


@pytest.mark.parametrize(
    "value", [b"no brotli", brotli.compress(config_map("a"))[:-3], brotli.compress(b"x") + b"y"]
)
def test_a_corrupt_compressed_value_is_exactly_one_error(value: bytes) -> None:
    result = decoded({"a.yaml.br": value, "b.yaml": config_map("b")})

    (error,) = result.errors
    assert "Secret s0, key a.yaml.br" in error
    assert names(result) == ["b"]


def test_dates_and_times_stay_text() -> None:
    value = config_map("a", "  annotations: {a: 2001-12-14, b: 1:30}\n")

    assert only(decoded({"a": value}))["metadata"]["annotations"] == {
        "a": "2001-12-14",
        "b": "1:30",
    }


def test_a_broken_document_is_reported_and_the_one_before_it_is_read() -> None:
    result = decoded({"k.yaml": config_map("a") + b"---\na: [\n"})

    assert names(result) == ["a"]
    (error,) = result.errors
    assert "Secret s0, key k.yaml, document 1" in error


# The rules


def test_secrets_are_read_in_order_and_keys_sorted_by_bytes() -> None:
    result = decoded(
        {
            "b": config_map("v2"),
            "B": config_map("v1"),
            "a.b": config_map("x"),
            "a-b": config_map("w"),
        },
        {"a": config_map("v3")},
    )

    assert names(result) == ["v1", "w", "x", "v2", "v3"]


def test_documents_without_content_are_skipped_but_counted() -> None:
    result = decoded({"k": b"---\n# nothing\n---\nnull\n---\n- a list\n---\n" + config_map("a")})

    assert names(result) == ["a"]
    (error,) = result.errors
    assert "document 2" in error
    assert "list" in error


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2", ".lz4"])
def test_an_unknown_compression_is_one_error_and_no_objects(suffix: str) -> None:
    result = decoded({f"a.yaml{suffix}": config_map("a")})

    assert result.objects == []
    (error,) = result.errors
    assert suffix in error


def test_an_empty_compressed_value_has_no_documents() -> None:
    assert decoded({"a.yaml.br": b""}) == Decoded(checksum=hashlib.sha256().hexdigest())


def test_the_checksum_repeats_the_stored_value_for_each_of_its_objects() -> None:
    packed = brotli.compress(config_map("a") + b"---\n" + config_map("b"))
    plain = config_map("c")

    result = decoded({"x.br": packed}, {"y": plain})

    assert result.checksum == hashlib.sha256(packed + packed + plain).hexdigest()


def test_an_ignored_object_is_released_and_not_hashed() -> None:
    ignored = config_map("a", "  annotations: {resources.gardener.cloud/mode: Ignore}\n")

    result = decoded({"a": ignored})

    assert result.objects == []
    assert [name_of(obj) for obj in result.released] == ["a"]
    assert result.checksum == hashlib.sha256().hexdigest()


@pytest.mark.parametrize("mode", ["ignore", "IGNORE", '""', "Ignored"])
def test_an_unknown_mode_counts_as_none(mode: str) -> None:
    value = config_map("a", f"  annotations: {{resources.gardener.cloud/mode: {mode}}}\n")

    assert names(decoded({"a": value})) == ["a"]


def test_an_object_without_a_kind_is_not_a_decoding_error() -> None:
    result = decoded({"a": b"metadata: {name: a}"})

    assert result.errors == []
    assert names(result) == ["a"]


def test_kinds_that_the_target_does_not_know_are_reported() -> None:
    result = decoded({"a": b"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}"})

    assert result.unknown == {GroupVersionKind("example.com", "v1", "Thing")}


def test_the_last_of_two_documents_for_an_object_counts() -> None:
    other_version = b"{apiVersion: v2, kind: ConfigMap, metadata: {name: a, namespace: ns}}"

    result = decoded({"a": config_map("a"), "b": config_map("b"), "c": other_version})

    assert [(obj["apiVersion"], name_of(obj)) for obj in result.objects] == [
        ("v1", "b"),
        ("v2", "a"),
    ]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("{namespace: ns}", "metadata.name is missing"),
        ("{nmae: a}", "metadata.name is missing"),
        ("{name: null}", "metadata.name is missing"),
        ("{name: ''}", "metadata.name is empty"),
        ("{name: 5}", "metadata.name must be a string, not int"),
        ("{name: [a]}", "metadata.name must be a string, not list"),
        ("{name: .}", "metadata.name must not be '.'"),
        ("{name: ..}", "metadata.name must not be '..'"),
        ("{name: a/b}", "metadata.name must not contain '/'"),
        ("{name: a%2Fb}", "metadata.name must not contain '%'"),
        ("{generateName: a-}", "metadata.name is missing; generateName is not supported"),
        ("{name: a, namespace: 5}", "metadata.namespace must be a string, not int"),
        ("{name: a, namespace: ..}", "metadata.namespace must not be '..'"),
        ("{name: a, namespace: b/pods}", "metadata.namespace must not contain '/'"),
        ("null", "metadata is missing"),
        ("[name]", "metadata must be a map"),
    ],
)
@pytest.mark.parametrize("mode", ["", ", annotations: {resources.gardener.cloud/mode: Ignore}"])
def test_a_document_that_names_no_object_is_an_error(
    metadata: str, problem: str, mode: str
) -> None:
    metadata = metadata.replace("}", f"{mode}}}")
    value = f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}}}".encode()

    result = decoded({"a": config_map("good") + b"---\n" + value})

    assert names(result) == ["good"]
    assert result.released == []
    assert result.errors == [f"Secret s0, key a, document 1: {problem}"]


def test_a_name_takes_precedence_over_a_generated_one() -> None:
    value = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, generateName: b-}}"

    assert names(decoded({"a": value})) == ["a"]


@pytest.mark.parametrize(
    ("data", "expected"), [({}, False), ({"a": b" \n"}, False), ({"a": b"# gone"}, True)]
)
def test_data_without_objects_is_distinguished_from_no_data(
    data: dict[str, bytes],
    expected: bool,
) -> None:
    assert decoded(data).has_data is expected


@pytest.mark.parametrize("own", ["apiVersion: v1, kind: ConfigMap, ", ""])
@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_the_items_of_a_list_are_objects(kind: str, own: str) -> None:
    items = ", ".join(f"{{{own}metadata: {{name: {name}}}}}" for name in "ab")
    listed = f"{{apiVersion: v1, kind: {kind}, metadata: {{}}, items: [{items}]}}"

    result = decoded({"a.yaml": listed.encode() + b"\n---\n" + config_map("c")})

    assert names(result) == ["a", "b", "c"]
    assert result.errors == []
    kinds = {obj.get("kind") for obj in result.objects[:2]}
    assert kinds == ({None} if kind == "List" and not own else {"ConfigMap"})
    assert {place.document for place in result.places.values()} == {0, 1}


def test_lists_may_contain_lists_and_errors_name_the_item() -> None:
    inner = "{kind: List, items: [{kind: A, metadata: {name: a}}, {kind: B}, 5]}"
    listed = f"{{apiVersion: v1, kind: List, items: [{inner}]}}"

    result = decoded({"a.yaml": listed.encode()})

    assert names(result) == ["a"]
    assert result.errors == [
        "Secret s0, key a.yaml, document 0, items[0].items[1]: metadata is missing",
        "Secret s0, key a.yaml, document 0, items[0].items[2]: expected an object, found int",
    ]


@pytest.mark.parametrize("items", ["", ", items: []", ", items: null"])
def test_an_empty_list_is_nothing(items: str) -> None:
    result = decoded({"a.yaml": f"{{apiVersion: v1, kind: List{items}}}".encode()})

    assert (result.objects, result.errors) == ([], [])


def test_an_object_whose_kind_only_ends_with_list_is_an_object() -> None:
    named = b"{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, items: [1]}"

    assert only(decoded({"a.yaml": named}))["items"] == [1]


def test_exceeding_the_budget_is_one_additional_error_and_ends_decoding() -> None:
    secrets = [SecretData(name, {"a": config_map(name)}) for name in ("s0", "s1", "s2", "s3")]

    result = decode(secrets, scope, Budget(documents=2))

    assert names(result) == ["s0", "s1"]
    (error,) = result.errors
    assert "documents; the rest was not read" in error


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"---\n@\n" * 20_000, "more than 100 broken documents"),
        (b"---\na: b\n" * 20_000, "more than 10000 documents"),
    ],
)
def test_errors_about_many_documents_are_limited_in_number_and_length(
    value: bytes, problem: str
) -> None:
    result = decoded({"a": value}, {"a": value})

    assert problem in result.errors[-1]
    assert result.objects == []
    assert len(errors_message(result.errors)) < 4_096


@pytest.mark.thorough("fuzz")
@given(value=st.binary(max_size=200), key=st.sampled_from(["a", "a.br", "a.gz"]))
def test_no_bytes_break_the_decoder(value: bytes, key: str) -> None:
    decoded({key: value})


@pytest.mark.thorough("fuzz")
@given(st.binary(max_size=500), st.data())
def test_a_corrupt_stream_is_content_or_one_error(content: bytes, data: st.DataObject) -> None:
    packed = bytearray(brotli.compress(content))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))

    result = decoded({"a.br": bytes(packed), "b": config_map("b")})

    assert names(result)[-1:] == ["b"]


@pytest.mark.thorough("fuzz")
@given(st.text("{}[]:-,\n'\"ab &*!|>#%@", max_size=60))
def test_no_text_breaks_the_decoder(text: str) -> None:
    decoded({"a": text.encode()})
