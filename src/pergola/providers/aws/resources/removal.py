"""Deletion of what is ours, which can be repeated at any time (spec 30 §9.1)."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from functools import partial
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import DependencyProblem, NotFound
from pergola.providers.aws.desired import OWNED, SHARED
from pergola.providers.aws.resources.decision import Decision, all_done
from pergola.providers.aws.resources.kinds import Kind
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.step import TIMEOUT, Step, Work
from pergola.providers.aws.resources.users_of import users_of
from pergola.runtime.retrying import retrying

POLLS: Final = 16
"""Attempts to delete resources in use: every 5 seconds, within a step's 90 seconds."""
LONG_POLLS: Final = 34
"""The same within 3 minutes."""
Ids = Callable[[Work], list[str]]
Delete = Callable[[Work, list[str]], Awaitable[object]]
DeleteOne = Callable[[Work, str], Awaitable[None]]


def deletion_step_of(
    name: str,
    ours: Ours,
    *,
    delete: DeleteOne | None = None,
    also: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    skip: str | None = None,
) -> Step:
    """Return the step that deletes a resource that is created for the cluster.

    Args:
        delete: Deletes it, if its kind is not enough to know how.
        also: Keys that the state forgets together with its id.
    """
    return deletion_step(
        name,
        lambda work: to_delete(work, ours),
        each(delete or one_of(ours.kind)),
        keys=(ours.key, *also),
        after=after,
        skip=skip,
    )


def deletion_step(
    name: str,
    ids: Ids,
    delete: Delete,
    *,
    keys: tuple[str, ...],
    after: tuple[str, ...] = (),
    skip: str | None = None,
    timeout: float = TIMEOUT,
) -> Step:
    """Return the step that deletes what is ours of a kind.

    Args:
        ids: Returns what is ours.
        delete: Deletes it, unless there is none.
        keys: The keys that the state forgets afterwards.
    """

    def decide(work: Work) -> Decision:
        return decide_to_delete(work, ids(work), delete, keys)

    return Step(name=name, decide=decide, after=after, skip=skip, timeout=timeout)


def decide_to_delete(work: Work, ids: list[str], delete: Delete, keys: tuple[str, ...]) -> Decision:
    """Decide to delete what has these ids, and to forget keys in any case."""
    if not ids:
        return Decision.skip("there is none", forget=keys)
    return Decision.deletion(", ".join(ids), partial(delete, work, ids), forget=keys)


def each(delete: DeleteOne) -> Delete:
    """Return what deletes several resources at the same time."""
    return lambda work, ids: all_done(*(delete(work, id_) for id_ in ids))


def one_of(kind: Kind) -> DeleteOne:
    """Return what deletes one resource of a kind."""

    async def delete(work: Work, id_: str) -> None:
        which: dict[str, Any] = {kind.id: id_}
        await remove(work, kind.delete, **which)
        kind.drop(work.snapshot, id_)

    return delete


def to_delete(work: Work, *several: Ours) -> list[str]:
    """Return the ids to delete: those in the state, and accepted ones that are ours.

    Resources tagged as shared are never included.
    """
    found: set[str] = set()
    for ours in several:
        things, names, known = ours.all(work), (ours.name(work),), work.state.get(ours.key)
        tagged = {id_ for id_, thing in things.items() if is_ours(work, thing, names)}
        found |= {id_ for id_ in tagged if ours.accept(work, things[id_])}
        found |= {known} if known else set()
        found -= {id_ for id_ in found if is_shared(work, things.get(id_))}
    return sorted(found)


def is_ours(work: Work, thing: JsonObject, names: Container[str]) -> bool:
    """Return whether a resource that the state does not name was created for this cluster.

    It has the cluster's tag and exactly one of the cluster's names: users give the tag to resources
    of their own as well, such as a subnet for load balancers. Resources of the cloud controller
    have other names, so the exact value `owned` of the tag decides about them.
    """
    given = tags_of(thing)
    return work.desired.owns(given) and given.get("Name") in names


def is_of_cloud_controller(value: str | None) -> bool:
    """Return whether the value of the cluster's tag marks what the cloud controller created."""
    return value == OWNED


def is_shared(work: Work, thing: JsonObject | None) -> bool:
    """Return whether a resource is only used by this cluster."""
    return thing is not None and tags_of(thing).get(work.desired.cluster_tag) == SHARED


async def remove(
    work: Work, operation: str, *, service: str = "ec2", polls: int = POLLS, **parameters: Any
) -> None:
    """Delete a resource; a missing one counts as deleted, one in use is retried.

    Raises:
        CloudError: AWS refused, or it is still in use after several attempts.
    """
    with retrying() as failed:
        for observe in range(polls):
            try:
                await work.aws.call(service, operation, **parameters)
            except NotFound:
                return
            except DependencyProblem as error:
                if observe == polls - 1:
                    raise await _in_use(work, error, parameters) from None
                failed(error)
            else:
                return
            await asyncio.sleep(work.poll_seconds)


async def _in_use(
    work: Work, error: DependencyProblem, parameters: Mapping[str, object]
) -> DependencyProblem:
    """Return the error with the network interfaces that are the reason for it."""
    users = await users_of(work, parameters)
    if not users:
        return error
    text = f"{error}: it is used by network interfaces {users}; delete what they belong to"
    return DependencyProblem(text, code=error.code, call=error.call)
