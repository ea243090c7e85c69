"""Deletion of the nodes' security group; a user-provided one is only forgotten (spec 30 §9.3)."""

from dataclasses import replace
from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.kinds import SECURITY_GROUP
from pergola.providers.aws.resources.ours import Ours, in_vpc
from pergola.providers.aws.resources.removal import delete_step, each, note, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work

DELETE: Final = "delete nodes security group"


def delete_steps(after: tuple[str, ...]) -> list[Step]:
    """Return the step that deletes the nodes' security group."""
    step = delete_step(
        DELETE,
        groups_to_delete,
        each(one_of(SECURITY_GROUP)),
        keys=(keys.NODES_SECURITY_GROUP,),
        after=after,
    )
    return [replace(step, plan=_plan)]


def groups_of_nodes(work: Work) -> set[str]:
    """Return the security groups of nodes: the user-provided one, or the cluster's."""
    given = work.desired.config.networks.nodes_security_group_id
    return {given} if given else set(groups_to_delete(work))


def groups_to_delete(work: Work) -> list[str]:
    """Return the managed group of the nodes; empty if the user provides one."""
    given = work.desired.config.networks.nodes_security_group_id
    return [] if given else to_delete(work, OURS)


def _plan(work: Work) -> Note:
    given = work.desired.config.networks.nodes_security_group_id
    return Note(Fate.KEEP, f"{given} is user-provided") if given else note(groups_to_delete(work))


def _is_named(work: Work, group: JsonObject) -> bool:
    return in_vpc(work, group) and group.get("GroupName") == OURS.name(work)


OURS: Final = Ours(
    kind=SECURITY_GROUP, key=keys.NODES_SECURITY_GROUP, suffix="nodes", accept=_is_named
)
