"""Deletion of the nodes' security group; a user-provided one is only forgotten (spec 30 §9.3)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.removal import forget, in_cluster_vpc, note, remove, to_delete
from pergola.providers.aws.resources.step import Step, Work

DELETE: Final = "delete nodes security group"


def delete_steps(after: tuple[str, ...]) -> list[Step]:
    """Return the step that deletes the nodes' security group."""
    return [Step(name=DELETE, plan=_plan, ensure=_ensure, after=after)]


def groups_of_nodes(work: Work) -> set[str]:
    """Return the security groups of nodes: the user-provided one, or the cluster's."""
    given = work.desired.config.networks.nodes_security_group_id
    return {given} if given else set(groups_to_delete(work))


def _plan(work: Work) -> Note:
    given = work.desired.config.networks.nodes_security_group_id
    return Note(Fate.KEEP, f"{given} is user-provided") if given else note(groups_to_delete(work))


async def _ensure(work: Work) -> None:
    for group in groups_to_delete(work):
        await remove(work, "DeleteSecurityGroup", GroupId=group)
        work.snapshot.security_groups.pop(group, None)
    forget(work, keys.NODES_SECURITY_GROUP)


def groups_to_delete(work: Work) -> list[str]:
    """Return the managed group of the nodes; empty if the user provides one."""
    if work.desired.config.networks.nodes_security_group_id:
        return []
    is_inside, name = in_cluster_vpc(work), work.desired.name("nodes")

    def is_it(group: JsonObject) -> bool:
        return is_inside(group) and group.get("GroupName") == name

    known = work.state.get(keys.NODES_SECURITY_GROUP)
    return to_delete(work, work.snapshot.security_groups, (known,), (name,), is_it)
