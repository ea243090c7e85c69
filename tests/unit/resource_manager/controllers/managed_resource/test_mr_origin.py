"""The origin of an object: its ManagedResource (spec 10 §3.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.resource_manager.origin import Origin, parse_origin

NAMES = st.text("abc-.1", min_size=1, max_size=5)


def test_an_origin_names_the_cluster_if_it_has_an_id() -> None:
    assert str(Origin("c1", "ns", "name")) == "c1:ns/name"
    assert str(Origin("", "ns", "name")) == "ns/name"


@pytest.mark.parametrize(
    "text", ["", "name", "a/b/c", "x:y:a/b", ":", "/", "c:name", "c1:/b", "c1:a/", ":a/b", "a/b:c"]
)
def test_other_texts_are_not_origins(text: str) -> None:
    assert parse_origin(text) is None


@given(st.just("") | NAMES, NAMES, NAMES)
def test_an_origin_is_read_back(cluster: str, namespace: str, name: str) -> None:
    origin = Origin(cluster, namespace, name)

    assert parse_origin(str(origin)) == origin
