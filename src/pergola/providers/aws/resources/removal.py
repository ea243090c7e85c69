"""Deletion of resources, which can be repeated at any time (spec 30 §9.1)."""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import DependencyProblem, NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.desired import OWNED, SHARED
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.users_of import users_of
from pergola.providers.aws.status import vpc_id
from pergola.runtime.retrying import retrying

POLLS: Final = 16
"""Attempts to delete resources in use: every 5 seconds, within a step's 90 seconds."""
LONG_POLLS: Final = 34
"""The same within 3 minutes."""
Accept = Callable[[JsonObject], bool]


def vpc_of(work: Work) -> str:
    """Return the cluster's VPC, by config, state or tags; empty if there is none."""
    found = work.snapshot.vpc or {}
    return vpc_id(work.desired, work.state) or str(found.get("VpcId", ""))


def in_cluster_vpc(work: Work) -> Accept:
    """Accept resources in the cluster's VPC."""
    vpc = vpc_of(work)
    return lambda thing: bool(vpc) and thing.get("VpcId") == vpc


def to_delete(
    work: Work,
    things: Mapping[str, JsonObject],
    known: Iterable[str | None],
    names: Container[str],
    also: Accept = lambda _: True,
) -> list[str]:
    """Return the ids to delete: those in the state, and accepted ones that are ours.

    Resources tagged as shared are never included.

    Args:
        names: the names that the cluster gives to resources of this kind.
    """
    found = {name for name, thing in things.items() if is_ours(work, thing, names) and also(thing)}
    found |= {name for name in known if name}
    return sorted(name for name in found if not is_shared(work, things.get(name)))


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


def note(names: Iterable[str]) -> Note:
    """Return the plan for resources to delete."""
    said = ", ".join(names)
    return Note(Fate.DELETE, said) if said else Note(Fate.SKIP, "there is none")


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


def forget(work: Work, *keys: str) -> None:
    """Remove keys from the state."""
    for key in keys:
        work.state.forget(key)
