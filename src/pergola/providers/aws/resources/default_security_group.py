"""The default security group of a managed VPC, without any rules (spec 30 §3.3)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import filters_by
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.removal import forget
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until

FORGET: Final = "forget default security group"


def steps(desired: Desired) -> list[Step]:
    """Return the step that revokes all rules; skipped for a user-provided VPC."""
    return [
        Step(
            name=names.DEFAULT_SECURITY_GROUP,
            plan=_plan,
            ensure=_ensure,
            after=(names.VPC,),
            skip="the VPC is user-provided" if desired.config.byo_vpc else None,
        )
    ]


def _plan(work: Work) -> Note:
    group = _known(work)
    if group is None:
        return Note(Fate.CHANGE, "AWS creates it with rules; all of them are revoked")
    if group.get("IpPermissions") or group.get("IpPermissionsEgress"):
        return Note(Fate.CHANGE, f"{group['GroupId']}: all its rules are revoked")
    return Note(Fate.KEEP, group["GroupId"])


def _known(work: Work) -> JsonObject | None:
    vpc = work.state.get(keys.VPC)
    groups = work.snapshot.security_groups.values()
    return next((g for g in groups if g["GroupName"] == "default" and g["VpcId"] == vpc), None)


async def _ensure(work: Work) -> None:
    group = _known(work)
    if group is None:
        group = await wait_until(work, lambda: _described(work))
    name = group["GroupId"]
    work.state.set(keys.DEFAULT_SECURITY_GROUP, name)
    for direction, rules in (("Ingress", "IpPermissions"), ("Egress", "IpPermissionsEgress")):
        if group.get(rules):
            operation = f"RevokeSecurityGroup{direction}"
            await work.aws.call("ec2", operation, GroupId=name, IpPermissions=group[rules])
            group[rules] = []


async def _described(work: Work) -> JsonObject | None:
    """Return the group, once AWS shows it."""
    by = filters_by({"vpc-id": work.state.get(keys.VPC) or "", "group-name": "default"})
    for group in await work.aws.pages(
        "ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=by
    ):
        work.snapshot.security_groups[group["GroupId"]] = group
    return _known(work)


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that forgets the group, which AWS deletes with its VPC."""
    return Step(
        name=FORGET,
        plan=lambda _: Note(Fate.KEEP, "it is deleted with its VPC"),
        ensure=_forget,
        after=after,
        skip=skip,
    )


async def _forget(work: Work) -> None:
    forget(work, keys.DEFAULT_SECURITY_GROUP)
