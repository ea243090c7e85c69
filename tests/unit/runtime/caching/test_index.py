"""Reverse lookups in a cache."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import Key
from pergola.runtime.caching.cache import Change, Subscriber
from pergola.runtime.caching.index import Index

WEB, API = Key("demo", "web"), Key("demo", "api")


class Source:
    """A source whose changes a test publishes."""

    def __init__(self) -> None:
        self.objects: dict[Key, frozenset[str]] = {}
        self._subscribers: list[Subscriber[frozenset[str]]] = []

    def subscribe(self, subscriber: Subscriber[frozenset[str]]) -> None:
        self._subscribers.append(subscriber)

    def change(self, key: Key, new: Iterable[str] | None) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = frozenset(new)
        for subscriber in self._subscribers:
            subscriber(Change(key, old, self.objects.get(key)))


def index_of(source: Source) -> Index[frozenset[str], str]:
    return Index(source, lambda _, values: values)


def test_an_object_is_found_under_each_of_its_values() -> None:
    source = Source()
    index = index_of(source)
    source.change(WEB, {"a", "b"})
    source.change(API, {"b"})
    assert set(index.keys("a")) == {WEB}
    assert set(index.keys("b")) == {WEB, API}


def test_a_value_that_no_object_has_any_longer_is_removed() -> None:
    source = Source()
    index = index_of(source)
    source.change(WEB, {"a"})
    source.change(WEB, {"c"})
    assert not index.keys("a")
    assert "a" not in index
    assert set(index.values()) == {"c"}
    source.change(WEB, None)
    assert not index.values()


changes = st.lists(
    st.tuples(
        st.sampled_from([WEB, API, Key("other", "web")]),
        st.none() | st.frozensets(st.sampled_from("abc")),
    )
)


@given(changes)
def test_an_index_agrees_with_a_search(
    history: list[tuple[Key, frozenset[str] | None]],
) -> None:
    source = Source()
    index = index_of(source)
    for key, values in history:
        source.change(key, values)
    for value in "abc":
        searched = {key for key, values in source.objects.items() if value in values}
        assert set(index.keys(value)) == searched
        assert (value in index) == bool(searched)
