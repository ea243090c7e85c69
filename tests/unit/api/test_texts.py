"""Texts in messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.texts import abridged


@pytest.mark.parametrize(
    ("texts", "separator", "expected"),
    [
        ([], ", ", ""),
        (["a"], ", ", "a"),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c"], ", ", "a, b and 1 more"),
        (["a", "b", "c", "d"], "; ", "a; b; and 2 more"),
    ],
)
def test_the_first_are_named_and_the_others_counted(
    texts: list[str], separator: str, expected: str
) -> None:
    assert abridged(texts, 2, separator=separator) == expected


@given(st.lists(st.text("ab", min_size=1)), st.integers(1, 5))
def test_no_text_is_left_out_without_being_counted(texts: list[str], most: int) -> None:
    named, _, more = abridged(texts, most).partition(" and ")
    others = int(more.removesuffix(" more") or 0)
    assert len([*filter(None, named.split(", "))]) + others == len(texts)
