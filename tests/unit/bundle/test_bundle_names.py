import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, labels_of, name_of
from pergola.bundle.errors import InvalidObject, NameTaken
from pergola.bundle.names import check_same_content, checksum, immutability_patch, make_unique

COLLECTABLE = "resources.gardener.cloud/garbage-collectable-reference"


def secret(name: str = "s", /, **data: bytes) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "ns"},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def config_map(name: str = "c", **fields: Any) -> JsonObject:
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


@pytest.mark.parametrize(
    ("data", "digits"),
    [({}, "e3b0c442"), ({"foo": b"bar"}, "bd142ccf"), ({"a": b"1", "b": b"2"}, "33b67563")],
)
def test_checksums_are_those_of_other_implementations(data: dict[str, bytes], digits: str) -> None:
    assert checksum(data).startswith(digits)
    assert name_of(make_unique(secret(**data))) == f"s-{digits}"


@given(st.dictionaries(st.text(max_size=4), st.binary(max_size=8)), st.randoms())
def test_the_order_of_keys_does_not_matter(data: dict[str, bytes], random: Any) -> None:
    shuffled = list(data.items())
    random.shuffle(shuffled)
    assert checksum(dict(shuffled)) == checksum(data)


def test_a_unique_object_is_immutable_and_collectable() -> None:
    unique = make_unique({**secret(foo=b"bar"), "type": "kubernetes.io/tls"})
    assert unique["immutable"] is True
    assert labels_of(unique) == {COLLECTABLE: "true"}
    assert unique["type"] == "kubernetes.io/tls"


def test_labels_of_the_object_are_kept() -> None:
    labelled = secret()
    labelled["metadata"]["labels"] = {"app": "x"}
    assert labels_of(make_unique(labelled)) == {"app": "x", COLLECTABLE: "true"}
    assert labelled["metadata"] == {"name": "s", "namespace": "ns", "labels": {"app": "x"}}


def test_a_name_that_ends_with_a_hyphen_gets_no_second_hyphen() -> None:
    assert name_of(make_unique(secret("s-", foo=b"bar"))) == "s-bd142ccf"


def test_text_and_base64_of_the_same_content_have_the_same_name() -> None:
    text = {**secret(), "stringData": {"foo": "bar"}}
    assert name_of(make_unique(text)) == name_of(make_unique(secret(foo=b"bar")))
    both = config_map(data={"a": "1"}, binaryData={"b": base64.b64encode(b"2").decode()})
    assert name_of(make_unique(both)) == "c-33b67563"


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}, "neither a Secret"),
        ({**secret(), "apiVersion": "v2"}, "neither a Secret"),
        (secret(""), "Secret has no name"),
        ({**secret(), "data": {"k": "%"}}, r"Secret ns/s: data\[k\] is not valid base64"),
        (config_map(data={"k": 1}), r"ConfigMap ns/c: data\[k\] is not a string"),
    ],
)
def test_objects_that_cannot_have_a_unique_name_are_refused(obj: JsonObject, problem: str) -> None:
    with pytest.raises(InvalidObject, match=problem):
        make_unique(obj)


def test_an_existing_object_with_the_same_content_is_accepted() -> None:
    check_same_content(secret(a=b"1"), {**secret(), "stringData": {"a": "1"}})


def test_renamed_keys_are_detected() -> None:
    old, new = make_unique(secret(a=b"1")), make_unique(secret(b=b"1"))
    assert name_of(old) == name_of(new)
    with pytest.raises(NameTaken, match=r"same values under other keys \(a instead of b\)"):
        check_same_content(old, new)


def test_other_content_is_detected_without_revealing_its_values() -> None:
    with pytest.raises(NameTaken, match="other content under b, c") as caught:
        check_same_content(secret(a=b"1", b=b"secret1"), secret(a=b"1", c=b"secret2"))
    with pytest.raises(NameTaken, match="other content under a;"):
        check_same_content(secret(a=b"secret1"), secret(a=b"secret2"))
    assert "secret" not in str(caught.value).replace("Secret", "")


def test_missing_marks_of_unique_objects_are_patched() -> None:
    desired = make_unique(secret())
    assert immutability_patch(desired, desired) == {}
    assert immutability_patch({**desired, "immutable": False}, desired) == {"immutable": True}
    bare = {**desired, "metadata": {"name": "s", "labels": {"app": "x"}}}
    assert immutability_patch(bare, desired) == {"metadata": {"labels": {COLLECTABLE: "true"}}}
