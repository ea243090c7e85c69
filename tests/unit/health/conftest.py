"""Objects that are valid except for one value, as a controller with a bug might leave them."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from pergola.api.objects import JsonObject

WORDS = ["", "True", "False", "Unknown", "20%", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
ODD = st.recursive(
    SCALARS | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=3,
)


@pytest.fixture(scope="session")
def damage() -> Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]:
    """Return a function that copies one of the objects and replaces one value at any depth."""
    return _damage


def _damage(data: st.DataObject, objects: Sequence[JsonObject]) -> JsonObject:
    obj: JsonObject = orjson.loads(orjson.dumps(data.draw(st.sampled_from(objects))))
    here: Any = obj
    while True:
        step = data.draw(
            st.sampled_from(list(here) if isinstance(here, dict) else range(len(here)))
        )
        inner = here[step]
        if not inner or not isinstance(inner, dict | list) or data.draw(st.integers(0, 3)) == 0:
            here[step] = data.draw(ODD)
            return obj
        here = inner
