"""From an object to its answer: combines all explainers that apply, in one order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, InvalidKey, NotFound
from pergola.why.answer import Answer, Asked, Part, Statement, Topic
from pergola.why.catalog import EXPLAINERS
from pergola.why.explainer import Explainer, installed
from pergola.why.reading import Reader

_ORDER: Final = tuple(Topic)


class NothingToExplain(Exception):
    """The object does not exist, or the caller may not read it; the text says what to do."""


async def explain(
    client: Client,
    gvk: GroupVersionKind,
    key: Key,
    extra: Sequence[Explainer] = (),
    *,
    source: Client | None = None,
    target: Client | None = None,
) -> Answer:
    """Return why an object of a cluster is as it is.

    Args:
        extra: Explainers to run in addition to all known ones.
        source: For the cluster with its ManagedResource, if that is another one.
        target: For the cluster with its objects, if it is a ManagedResource for another cluster.

    Raises:
        NothingToExplain: It does not exist, or the caller may not read it.
        KubeError: The API server does not answer.
    """
    try:
        obj = await client.get(gvk, key)
    except InvalidKey as error:
        raise NothingToExplain(str(error)) from None
    except Forbidden as error:
        raise NothingToExplain(f"you may not read {gvk.kind} {key}: {error}") from None
    except NotFound:
        reader = Reader(source or client)
        raise NothingToExplain(await _missing(reader, gvk, key)) from None
    return await explain_object(client, obj, extra, source=source, target=target)


async def explain_object(
    client: Client,
    obj: JsonObject,
    extra: Sequence[Explainer] = (),
    *,
    source: Client | None = None,
    target: Client | None = None,
) -> Answer:
    """Return why an object is as it is; it need not be in the cluster.

    Args:
        extra: Explainers to run in addition to all known ones.
        source: As for `explain`.
        target: As for `explain`.

    Raises:
        KubeError: The API server does not answer.
    """
    asked = Asked(GroupVersionKind.of(obj), Key.of(obj), obj)
    reader = Reader(client, source=source, target=target)
    known = (*extra, *EXPLAINERS, *installed())
    parts = [await each.explain(asked, reader) for each in known if each.applies(obj)]
    statements = tuple(_sorted(statement for part in parts for statement in part.statements))
    state = _state(asked, statements)
    return Answer(
        name=str(asked),
        state=state,
        sentence=f"{asked} {_verdict(asked, parts, state)}",
        asked=asked,
        statements=statements,
        next_steps=tuple(dict.fromkeys(_next_steps(parts, statements))),
        unread=reader.unread,
    )


def _sorted(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements by topic, without duplicates."""
    return sorted(dict.fromkeys(statements), key=lambda it: _ORDER.index(it.topic))


def _state(asked: Asked, statements: Iterable[Statement]) -> str:
    topics = {each.topic for each in statements}
    if deletion_timestamp_of(asked.obj) is not None:
        return "deleting"
    if Topic.PROBLEM in topics:
        return "unhealthy"
    return "waiting" if Topic.WAITS in topics else "ok"


def _verdict(asked: Asked, parts: Iterable[Part], state: str) -> str:
    """Return the first sentence of a part that found what is wrong; of any part if nothing is."""
    if state == "deleting":
        return "is being deleted"
    sentences = (part.sentence for part in parts if state == "ok" or _has_trouble(part))
    default = _VERDICTS[state] if uid_of(asked.obj) else _VERDICTS_BEFORE[state]
    return next(filter(None, sentences), default)


def _has_trouble(part: Part) -> bool:
    return any(each.topic in _TROUBLE for each in part.statements)


_TROUBLE: Final = (Topic.PROBLEM, Topic.WAITS)
_VERDICTS: Final = {
    "unhealthy": "is not as it should be",
    "waiting": "is not ready yet",
    "ok": "exists, and nothing is known to be wrong with it",
}
_VERDICTS_BEFORE: Final = {
    **_VERDICTS,
    "ok": "does not exist yet, and nothing is known to be wrong with it",
}


def _next_steps(parts: Iterable[Part], statements: Iterable[Statement]) -> Iterator[str]:
    yield from filter(None, (each.next_step for each in statements))
    for part in parts:
        yield from part.next_steps


async def _missing(reader: Reader, gvk: GroupVersionKind, key: Key) -> str:
    """Return that an object does not exist, and which ManagedResource should have created it."""
    # It decodes as the resource manager does, whose modules existing objects do not need.
    from pergola.why.manifests import lists

    where = f" in namespace {key.namespace}" if key.namespace else ""
    text = f"{gvk.kind} {key.name} does not exist{where}"
    for resource in await reader.listed(MANAGED_RESOURCE):
        if lists(resource, gvk, key):
            owner = Key.of(resource)
            return (
                f"{text}, although ManagedResource {owner} lists it; run "
                f"`pergola why managedresource/{owner.name} -n {owner.namespace}`"
            )
    return text
