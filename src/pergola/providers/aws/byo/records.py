"""Records of the tags that we added to user-provided resources, so that only those are removed.

`TaggedByPergola/<id>` in the state contains the keys, separated by commas, or `-` if the user set
all tags. It is saved before the tags are added: a flow that is killed in between has recorded too
much, never too little.

Without a record, the owner of a tag is unknown: the cluster predates records, or its state was
lost. The tags of resources named in the config then count as ours.
"""

from collections.abc import Collection, Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import MARKER, SHARED, Desired
from pergola.providers.aws.resources.step import Work

NOTHING: Final = "-"


def recorded(state: State, thing: str) -> frozenset[str] | None:
    """Return the keys of our tags on a resource; None if unknown."""
    text = state.get(keys.tagged_key(thing))
    if text is None:
        return None
    return frozenset() if text == NOTHING else frozenset(text.split(","))


def all_recorded(state: State) -> dict[str, frozenset[str]]:
    """Return the keys of our tags, by the ids of all resources that have any."""
    found = {thing: recorded(state, thing) for thing in state.under(keys.TAGGED)}
    return {thing: ours for thing, ours in found.items() if ours}


def to_record(
    work: Work, things: Mapping[str, JsonObject], adding: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return the records of the tags that are ours, and of those that are about to be added.

    Args:
        adding: the keys that are about to be added, by the ids of things.
    """
    known = _Known(work)
    values: dict[str, str] = {}
    for name, thing in things.items():
        ours = recorded(work.state, name)
        if ours is None:
            ours = present(work.desired, thing) if known.tagged_by_us(name) else frozenset()
        values |= _record(name, ours | frozenset(adding.get(name, ())))
    return values


def as_users(state: State, thing: str) -> dict[str, str]:
    """Return the record that the user set all tags of a resource, unless it already has one."""
    return _record(thing, ()) if recorded(state, thing) is None else {}


def withdraw(state: State, thing: str, unwritten: Collection[str]) -> None:
    """Correct a record after tags could not be added."""
    ours = (recorded(state, thing) or frozenset()) - frozenset(unwritten)
    for key, text in _record(thing, ours).items():
        state.created(key, text)


def forget(state: State, thing: str) -> None:
    """Drop the record of a resource without our tags, but not the fact that it never had any.

    Otherwise, a second run would mistake the user's tags for ours.
    """
    if recorded(state, thing):
        state.forget(keys.tagged_key(thing))


def present(desired: Desired, thing: JsonObject) -> frozenset[str]:
    """Return the keys of tags that look like ours, except role tags, which stay anyway."""
    tags = tags_of(thing)
    ours = {desired.cluster_tag} if tags.get(desired.cluster_tag) == SHARED else set()
    return frozenset(ours | ({MARKER} & tags.keys()))


def _record(thing: str, ours: Collection[str]) -> dict[str, str]:
    return {keys.tagged_key(thing): ",".join(sorted(ours)) or NOTHING}


class _Known:
    """The facts about a network that the state had when the run began.

    Steps that run in parallel write to the state; their findings say nothing about the past.
    """

    def __init__(self, work: Work) -> None:
        state, snapshot = work.before, work.snapshot
        self._ids = frozenset(state.under(keys.ZONES).values())
        has_nodes = snapshot.role is not None or snapshot.key_pair is not None
        known = any(keys.in_zones(state, keys.SUBNET_WORKERS))
        self._lost = has_nodes and not (
            known or state.get(keys.ROLE_NAME) or state.get(keys.KEY_PAIR)
        )

    def tagged_by_us(self, thing: str) -> bool:
        return self._lost or thing in self._ids
