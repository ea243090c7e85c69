"""Tags on user-provided resources: compared first, added only if missing (§8.2).

A key that exists keeps its value: the tags are the user's. Without permission to create tags, the
flow continues, and a warning lists the missing ones with the command that adds them.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import Unauthorized
from pergola.providers.aws.byo import records, tables
from pergola.providers.aws.desired import MARKER, SHARED, Desired
from pergola.providers.aws.load_balancer_roles import HAS_ROLE, Role
from pergola.providers.aws.preflight.subnets import named
from pergola.providers.aws.resources import byo_step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import add_tags, advice, as_list

Tags = dict[str, str]


def missing(desired: Desired, things: Mapping[str, JsonObject]) -> dict[str, Tags]:
    """Return the tags to add to user-provided subnets and route tables, by their ids."""
    found = {}
    for name, tags in _desired_tags(desired, things).items():
        lacking = _lacking(tags, tags_of(things[name])) if name in things else {}
        if lacking:
            found[name] = lacking
    return found


def with_tags(desired: Desired, subnets: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    """Return subnets as they will be once the missing tags are added."""
    lacking = missing(desired, subnets)
    return {
        name: {**subnet, "Tags": as_list({**tags_of(subnet), **lacking.get(name, {})})}
        for name, subnet in subnets.items()
    }


def user_provided(work: Work) -> dict[str, JsonObject]:
    """Return the user-provided resources to tag: named subnets, and route tables."""
    subnets = {each.id: work.snapshot.subnets.get(each.id) for each in named(work.desired)}
    known = {name: subnet for name, subnet in subnets.items() if subnet is not None}
    return known | tables.of_workers(work.desired, work.snapshot)


def _desired_tags(desired: Desired, things: Mapping[str, JsonObject]) -> dict[str, Tags]:
    tags: dict[str, Tags] = defaultdict(dict)
    for zone in desired.config.networks.zones:
        if zone.workers_subnet_id and desired.tag_worker_subnets:
            tags[zone.workers_subnet_id][desired.cluster_tag] = SHARED
        for role in Role:
            subnet = role.named_by(zone)
            if subnet:
                tags[subnet] |= {desired.cluster_tag: SHARED, role.tag: HAS_ROLE}
    for name, thing in things.items():
        if "RouteTableId" in thing:
            tags[name][desired.cluster_tag] = SHARED
    return dict(tags)


def _lacking(tags: Tags, there: Tags) -> Tags:
    lacking = {key: value for key, value in tags.items() if key not in there}
    roles = [role.tag for role in Role if role.tag in lacking]
    if roles and MARKER not in there:
        lacking[MARKER] = roles[0]
    return lacking


def _decide(work: Work) -> Decision:
    things = user_provided(work)
    lacking = missing(work.desired, things)
    if not lacking:
        return Decision.keep("all tags are already set")
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for name, tags in lacking.items():
        alike[tuple(tags.items())].append(name)
    return Decision.change(
        "; ".join(f"{name}: {', '.join(tags)}" for name, tags in lacking.items()),
        *(partial(_add, work, things, names, dict(tags)) for tags, names in alike.items()),
    )


async def _add(work: Work, things: Mapping[str, JsonObject], names: list[str], tags: Tags) -> None:
    try:
        await add_tags(work, [(name, things[name], tags) for name in names])
    except Unauthorized as error:
        _report(work, names, tags, error)


def _report(work: Work, several: list[str], tags: Tags, error: Unauthorized) -> None:
    for name in several:
        records.withdraw(work.state, name, tags)
    work.warnings.append(
        f"tags are missing and the credentials may not create them ({error.code}): "
        f"{advice(work.desired.region, several, tags)}"
    )


STEP: Final = Step(name=names.TAG, decide=_decide, after=(names.READ,))
