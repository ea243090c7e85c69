"""The Secrets that a ManagedResource reads; an entry without a name is never ignored."""

import pytest

from pergola.api.objects import JsonValue
from pergola.resource_manager.controllers.managed_resource.secrets import (
    UnreadableSecret,
    referenced_secrets,
)


@pytest.mark.parametrize("names", [[], ["a"], ["b", "a", "b"]])
def test_the_names_keep_their_order(names: list[str]) -> None:
    references = [{"name": name} for name in names]

    assert referenced_secrets({"spec": {"secretRefs": references}}) == names


@pytest.mark.parametrize(
    ("references", "problem"),
    [
        ([{"name": "a"}, {}], r"spec.secretRefs\[1\].name is missing"),
        ([{"name": None}], "is missing"),
        ([{"name": ""}], "is empty"),
        ([{"name": 5}], "must be a string, not int"),
        ([{"name": "a/b"}], "must not contain '/'"),
        ([None], "is missing"),
        (["a"], "is missing"),
        (None, "spec.secretRefs must be a list"),
        ({"name": "a"}, "spec.secretRefs must be a list"),
    ],
)
def test_an_entry_without_a_usable_name_is_an_error(references: JsonValue, problem: str) -> None:
    with pytest.raises(UnreadableSecret, match=problem):
        referenced_secrets({"spec": {"secretRefs": references}})
