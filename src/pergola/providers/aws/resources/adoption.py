"""Finding previously created resources, by the state or else by their tags (spec 30 §3.1).

Only resources in the cluster's own VPC are accepted, and only an unambiguous one is adopted.
"""

import asyncio
from functools import partial

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.decision import Call, Decision
from pergola.providers.aws.resources.kinds import Kind
from pergola.providers.aws.resources.ours import Ours
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.waiting import POLLS, once_visible


async def refresh(work: Work, ours: Ours) -> None:
    """Describe a resource that is in the state but not in the snapshot.

    It may be newer than the snapshot, or not visible everywhere yet: it is described several times
    before it counts as deleted.

    Raises:
        CloudError: AWS refused.
    """
    recorded = work.state.get(ours.key)
    if recorded is None or recorded in ours.all(work):
        return
    for attempt in range(POLLS):
        if attempt:
            await asyncio.sleep(work.poll_seconds)
        if await described(work, ours.kind, recorded) is not None:
            return


async def described(work: Work, kind: Kind, id_: str) -> JsonObject | None:
    """Describe one resource now, and update the snapshot; None if AWS does not find it.

    Raises:
        CloudError: AWS refused.
    """
    try:
        answer = await work.aws.call("ec2", kind.describe, **{f"{kind.id}s": [id_]})
    except NotFound:
        return None
    things: list[JsonObject] = answer.get(kind.items) or []
    for thing in things[:1]:
        kind.put(work.snapshot, thing)
    return next(iter(things), None)


def known(work: Work, ours: Ours) -> str | None:
    """Return the id of a previously created resource, according to the state and the snapshot.

    Raises:
        ExtensionError: the state has no id, and several resources have the tags.
    """
    recorded, things = work.state.get(ours.key), ours.all(work)
    accepted = {id_: each for id_, each in things.items() if ours.accept(work, each)}
    return recorded if recorded in accepted else tags.only_one(work, accepted, ours.tags(work))


def create_or_keep(
    work: Work, ours: Ours, new: str, operation: str, **parameters: object
) -> Decision:
    """Decide about a resource: keep it, correct its tags, or create it.

    Args:
        new: The text of a plan about the new resource.
        operation: Creates it.
    """
    id_ = known(work, ours)
    if id_ is None:
        call = partial(create, work, ours, operation, **parameters)
        return Decision.creation(new, call, record={ours.key: ""})
    return Decision.change_or_keep(id_, tag_changes(work, ours, id_), {ours.key: id_})


def tag_changes(work: Work, ours: Ours, id_: str) -> dict[str, Call]:
    """Return the correction of the tags of a resource, if they differ."""
    thing, desired = ours.all(work)[id_], ours.tags(work)
    if not any(tags.differing(work, thing, desired)):
        return {}
    return {"its tags": partial(tags.retag, work, id_, thing, desired)}


async def create(work: Work, ours: Ours, operation: str, **parameters: object) -> None:
    """Create a resource with its tags, and record its id at once.

    Raises:
        CloudError: AWS refused.
    """
    specification = tags.specification(ours.kind.type, ours.tags(work))
    answer = await once_visible(work, operation, **parameters, TagSpecifications=specification)
    remember(work, ours, answer)


def remember(work: Work, ours: Ours, answer: JsonObject) -> None:
    """Record at once what the answer to a request has created, with its tags."""
    thing = {**ours.kind.created(answer), "Tags": tags.as_list(ours.tags(work))}
    work.state.created(ours.key, ours.kind.put(work.snapshot, thing))
