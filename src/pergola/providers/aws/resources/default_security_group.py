"""The default security group of a managed VPC, without any rules (spec 30 §3.3)."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import filters_by
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import wait_until

FORGET: Final = "forget default security group"
_REVOKE: Final = {
    "IpPermissions": "RevokeSecurityGroupIngress",
    "IpPermissionsEgress": "RevokeSecurityGroupEgress",
}


def steps(desired: Desired) -> list[Step]:
    """Return the step that revokes all rules; skipped for a user-provided VPC."""
    return [
        Step(
            name=names.DEFAULT_SECURITY_GROUP,
            observe=_observe,
            decide=_decide,
            after=(names.VPC,),
            skip="the VPC is user-provided" if desired.config.byo_vpc else None,
        )
    ]


async def _observe(work: Work) -> None:
    if _known(work) is None:
        await wait_until(work, lambda: _described(work))


def _decide(work: Work) -> Decision:
    group = _known(work)
    if group is None:
        return Decision.change("AWS creates it with rules; all of them are revoked")
    name = str(group["GroupId"])
    record = {keys.DEFAULT_SECURITY_GROUP: name}
    calls = [partial(_revoke, work, group, rules) for rules in _REVOKE if group.get(rules)]
    if not calls:
        return Decision.keep(name, record)
    return Decision.change(f"{name}: all its rules are revoked", *calls, record=record)


def _known(work: Work) -> JsonObject | None:
    vpc = work.state.get(keys.VPC)
    groups = work.snapshot.security_groups.values()
    return next((g for g in groups if g["GroupName"] == "default" and g["VpcId"] == vpc), None)


async def _revoke(work: Work, group: JsonObject, rules: str) -> None:
    name, permissions = group["GroupId"], group[rules]
    await work.aws.call("ec2", _REVOKE[rules], GroupId=name, IpPermissions=permissions)
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
    return Step(name=FORGET, decide=_decide_to_forget, after=after, skip=skip)


def _decide_to_forget(work: Work) -> Decision:
    del work
    return Decision.keep("it is deleted with its VPC", forget=(keys.DEFAULT_SECURITY_GROUP,))
