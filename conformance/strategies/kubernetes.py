"""Parts of Kubernetes objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject

TEXTS: Final = st.text(max_size=12)
"""Any text, which includes empty and odd ones."""
NAMES: Final = st.sampled_from(["a", "b", "c", "web", "web-7d4", "kube-proxy"])
LABELS: Final = st.dictionaries(
    st.sampled_from(["app", "role", "tier"]), st.sampled_from(["a", "b", ""]), max_size=3
)
NUMBERS: Final = st.integers(0, 3) | st.just(2**31 - 1)
GENERATIONS: Final = st.integers(0, 3)
STATUSES: Final = st.sampled_from(["True", "False", "Unknown"])


def some(
    fields: Mapping[str, SearchStrategy[Any]],
    required: Mapping[str, SearchStrategy[Any]] | None = None,
) -> SearchStrategy[JsonObject]:
    """Return objects with any of some fields."""
    return st.fixed_dictionaries(dict(required or {}), optional=dict(fields))


def conditions(
    types: Sequence[str], reasons: Sequence[str] = ("", "Reason")
) -> SearchStrategy[list[JsonObject]]:
    """Return conditions of some types, at most one of each."""
    one = some(
        {"reason": st.sampled_from(reasons), "message": TEXTS, "observedGeneration": GENERATIONS},
        {"type": st.sampled_from(types), "status": STATUSES},
    )
    return st.lists(one, max_size=len(types), unique_by=lambda condition: str(condition["type"]))
