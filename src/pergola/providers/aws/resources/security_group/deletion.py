"""Deletion of the nodes' security group; a user-provided one is only forgotten (spec 30 §9.3)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import SECURITY_GROUP
from pergola.providers.aws.resources.ours import Ours, in_vpc
from pergola.providers.aws.resources.removal import decide_to_delete, each, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work

DELETE: Final = "delete nodes security group"


def delete_steps(after: tuple[str, ...]) -> list[Step]:
    """Return the step that deletes the nodes' security group."""
    return [Step(name=DELETE, decide=_decide, after=after)]


def _decide(work: Work) -> Decision:
    given = work.desired.config.networks.nodes_security_group_id
    if given:
        return Decision.keep(f"{given} is user-provided", forget=(OURS.key,))
    ids = groups_to_delete(work)
    return decide_to_delete(work, ids, each(one_of(SECURITY_GROUP)), (OURS.key,))


def groups_of_nodes(work: Work) -> set[str]:
    """Return the security groups of nodes: the user-provided one, or the cluster's."""
    given = work.desired.config.networks.nodes_security_group_id
    return {given} if given else set(groups_to_delete(work))


def groups_to_delete(work: Work) -> list[str]:
    """Return the managed group of the nodes; empty if the user provides one."""
    given = work.desired.config.networks.nodes_security_group_id
    return [] if given else to_delete(work, OURS)


def _is_named(work: Work, group: JsonObject) -> bool:
    return in_vpc(work, group) and group.get("GroupName") == OURS.name(work)


OURS: Final = Ours(
    kind=SECURITY_GROUP, key=keys.NODES_SECURITY_GROUP, suffix="nodes", accept=_is_named
)
