"""Metadata that no API server has checked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.object_metadata import metadata_problem
from pergola.api.objects import JsonObject, JsonValue

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"annotations": {"a": 5}}, 'metadata.annotations[a] must be a text: write "5"'),
        ({"labels": {"a": True}}, 'metadata.labels[a] must be a text: write "true"'),
        ({"labels": {"a": ["b"]}}, "metadata.labels[a] must be a text"),
        ({"labels": ["a"]}, "metadata.labels must be a map of texts"),
        ({"name": 5}, 'metadata.name must be a text: write "5"'),
        ({"finalizers": [1]}, 'metadata.finalizers[0] must be a text: write "1"'),
        ({"finalizers": "a"}, "metadata.finalizers must be a list of texts"),
        ({"ownerReferences": [1]}, "metadata.ownerReferences must be a list of maps"),
        ("text", "metadata must be a map"),
    ],
)
def test_a_wrong_type_is_named_with_its_path(metadata: JsonValue, problem: str) -> None:
    assert metadata_problem({"metadata": metadata}) == problem


@pytest.mark.parametrize("metadata", [None, {}, {"name": "a", "labels": {"a": "b"}, "uid": None}])
def test_texts_and_nulls_are_no_problem(metadata: JsonObject | None) -> None:
    assert metadata_problem({"metadata": metadata}) is None


@given(JSON, JSON)
def test_no_value_is_too_odd(metadata: JsonValue, annotations: JsonValue) -> None:
    metadata_problem({"metadata": metadata})
    metadata_problem({"metadata": {"annotations": annotations, "finalizers": annotations}})
