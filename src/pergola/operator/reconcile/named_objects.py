"""Triggers: the Secrets and ConfigMaps that a Garden names, and its wildcard certificate.

The Garden is reconciled when one of them changes its content, appears or disappears.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, Key, labels_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape import NAMESPACE
from pergola.kube.selectors import matches, parse_selector
from pergola.operator.copies import Copies
from pergola.operator.run.observed import WILDCARD
from pergola.operator.run.references import references_of
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.index import Index
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.watches import Watch, all_of, changed, later

Identity = tuple[str, Key]
"""A kind, `Secret` or `ConfigMap`, and a key."""

_CONTENT: Final = ("data", "binaryData", "type")
_WILDCARD: Final = parse_selector(WILDCARD)
_ANY: Final[Identity] = (SECRET.kind, Key(NAMESPACE, ""))
"""Stands for the wildcard certificate, which every Garden uses without naming it."""


class Content(NamedTuple):
    """The comparable content of an object, and whether it is the certificate."""

    digest: bytes
    is_wildcard: bool


def named_object_watches(
    copies: Copies, is_ignored: Callable[[JsonObject], bool]
) -> Iterator[Watch[Any, Key]]:
    """Yield the triggers of the Gardens that are not ignored."""

    def names(garden: JsonObject) -> frozenset[Identity]:
        if is_ignored(garden):
            return frozenset()
        return frozenset({_ANY, *((each.kind, each.key) for each in references_of(garden))})

    gardens = Index(View(copies.of(GARDEN), names), lambda _, named: named)
    for gvk in (SECRET, CONFIG_MAP):
        contents = View(copies.of(gvk, NAMESPACE), content_of)
        users = partial(_users, gardens, gvk.kind)
        yield Watch(contents, to=users, when=all_of(later, changed))


def content_of(obj: JsonObject) -> Content:
    """Return the content that consumers of a Secret or ConfigMap see; metadata is irrelevant."""
    content = orjson.dumps([obj.get(name) for name in _CONTENT], option=orjson.OPT_SORT_KEYS)
    is_wildcard = obj.get("kind") == SECRET.kind and matches(_WILDCARD, labels_of(obj))
    return Content(blake2b(content, digest_size=16).digest(), is_wildcard)


def _users(
    gardens: Index[frozenset[Identity], Identity], kind: str, change: Change[Content]
) -> Iterable[Key]:
    is_wildcard = any(each.is_wildcard for each in (change.old, change.new) if each)
    named = gardens.keys((kind, change.key))
    return {*named, *gardens.keys(_ANY)} if is_wildcard else [*named]
