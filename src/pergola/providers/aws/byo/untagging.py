"""Removing our own tags from user-provided resources (spec 30 §9.3).

Subnets, route tables and the VPC stay, as do role tags, which other clusters may use. Resources
that the user has deleted count as done.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound, Unauthorized
from pergola.providers.aws import state as keys
from pergola.providers.aws.byo import records
from pergola.providers.aws.desired import SHARED
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.preflight.subnets import named
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import as_list

UNTAG: Final = "remove tags of subnets and route tables"
_ROLES: Final = frozenset(role.tag for role in Role)
Tags = tuple[tuple[str, str | None], ...]
"""Tags to remove: by key and value, or by key alone."""


def step(after: tuple[str, ...]) -> Step:
    """Return the step that removes our tags."""
    return Step(name=UNTAG, decide=_decide, after=after)


def _things(work: Work) -> list[str]:
    """Return all resources that may have one of our tags: from config, state and records.

    Subnets that only the state knows were found by the user's own tags, which stay.
    """
    by_config = [each.id for each in named(work.desired)]
    by_state = [
        name
        for key in (keys.SUBNET_WORKERS, keys.ROUTE_TABLE)
        for _, name in keys.in_zones(work.state, key)
    ]
    return list(dict.fromkeys([*by_config, *by_state, *records.all_recorded(work.state)]))


def _ours(work: Work, name: str) -> Tags:
    """Return the tags to remove from a resource.

    Recorded ones are removed even if they are not visible: they may be very new.
    """
    known = records.recorded(work.state, name)
    if known is None:
        thing = work.snapshot.subnets.get(name) or work.snapshot.route_tables.get(name) or {}
        known = records.present(work.desired, thing)
    cluster = work.desired.cluster_tag
    return tuple((key, SHARED if key == cluster else None) for key in sorted(known - _ROLES))


def _decide(work: Work) -> Decision:
    ours = {name: tags for name in _things(work) if (tags := _ours(work, name))}
    forget = tuple(f"{keys.ZONES}/{key}" for key in work.state.under(keys.ZONES))
    if not ours:
        return Decision.keep("no tag is ours", forget=forget)
    alike: dict[tuple[bool, Tags], list[str]] = defaultdict(list)
    for name, tags in ours.items():
        alike[bool(records.recorded(work.state, name)), tags].append(name)
    return Decision.deletion(
        "; ".join(f"{name}: {', '.join(key for key, _ in tags)}" for name, tags in ours.items()),
        *(partial(_remove, work, names, tags, must=must) for (must, tags), names in alike.items()),
        forget=forget,
    )


async def _remove(work: Work, several: list[str], tags: Tags, *, must: bool) -> None:
    """Remove tags from resources.

    Args:
        must: whether the tags are certainly ours; otherwise, failing to remove them is only a
            warning.
    """
    try:
        await _delete_tags(work, several, tags)
    except Unauthorized as error:
        if must:
            raise
        work.warnings.append(
            f"tags are left and the credentials may not delete them ({error.code}): "
            f"{_advice(work.desired.region, several, tags)}"
        )
        return
    for name in several:
        thing = work.snapshot.subnets.get(name) or work.snapshot.route_tables.get(name)
        if thing is not None:
            removed = {key for key, _ in tags}
            thing["Tags"] = as_list({k: v for k, v in tags_of(thing).items() if k not in removed})
        records.forget(work.state, name)


async def _delete_tags(work: Work, several: list[str], tags: Tags) -> None:
    """Delete tags with one request, or resource by resource if one was deleted."""
    call = partial(work.aws.call, "ec2", "DeleteTags", Tags=_as_aws(tags))
    try:
        await call(Resources=several)
    except NotFound:
        for name in several if len(several) > 1 else ():
            try:
                await call(Resources=[name])
            except NotFound:
                continue


def _as_aws(tags: Tags) -> list[JsonObject]:
    return [{"Key": key} if value is None else {"Key": key, "Value": value} for key, value in tags]


def _advice(region: str, things: Iterable[str], tags: Tags) -> str:
    pairs = " ".join(f"Key={key}" + (f",Value={value}" if value else "") for key, value in tags)
    return f"aws ec2 delete-tags --region {region} --resources {' '.join(things)} --tags {pairs}"
