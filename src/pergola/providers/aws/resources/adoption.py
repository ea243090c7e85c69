"""Finding previously created resources, by the state or else by their tags (spec 30 §3.1).

Only resources in the cluster's own VPC are accepted, and only an unambiguous one is adopted.
"""

import asyncio
from collections.abc import Callable

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.kinds import Kind
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.waiting import POLLS

Accept = Callable[[JsonObject], bool]


def in_vpc(work: Work) -> Accept:
    """Accept resources in the cluster's VPC; nothing while there is none."""
    vpc = work.state.get(keys.VPC)
    return lambda thing: vpc is not None and thing.get("VpcId") == vpc


def attached_to_vpc(work: Work) -> Accept:
    """Accept a gateway that is attached to the cluster's VPC, or to nothing yet."""
    vpc = work.state.get(keys.VPC)

    def accept(gateway: JsonObject) -> bool:
        attachments = gateway.get("Attachments") or []
        return not attachments or any(each.get("VpcId") == vpc for each in attachments)

    return accept


def everything(thing: JsonObject) -> bool:
    """Accept any resource, for kinds without a VPC."""
    del thing
    return True


def known(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", **more: str
) -> str | None:
    """Return the id of a previously created resource, according to the state and the snapshot.

    Args:
        key: the key of the id in the state.
        suffix: of the resource's name.
        more: tags in addition to those of every resource of the cluster.

    Raises:
        ExtensionError: the state has no id, and several resources have the tags.
    """
    recorded = work.state.get(key)
    thing = kind.one(work.snapshot, recorded)
    if thing is not None and accept(thing):
        return recorded
    accepted = {id_: each for id_, each in kind.in_snapshot(work.snapshot).items() if accept(each)}
    return tags.only_one(work, accepted, suffix, **more)


def foreseen(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", *, new: str, **more: str
) -> Note:
    """Plan one resource: keep it, change its tags, or create it.

    Args:
        new: what would be created.
    """
    id_ = known(work, kind, key, accept, suffix, **more)
    if id_ is None:
        return Note(Fate.CREATE, new)
    thing = kind.in_snapshot(work.snapshot)[id_]
    if any(tags.differing(work, thing, work.desired.tags(suffix, **more))):
        return Note(Fate.CHANGE, f"{id_}: its tags")
    return Note(Fate.KEEP, id_)


async def find(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", **more: str
) -> JsonObject | None:
    """Return a previously created resource, with its tags corrected and its id in the state.

    A resource that is in the state but not in the snapshot may be newer than the snapshot, or not
    visible everywhere yet: it is described again before it counts as deleted.

    Raises:
        ExtensionError: the state has no id, and several resources have the tags.
        CloudError: AWS refused.
    """
    await refresh(work, kind, key)
    id_ = known(work, kind, key, accept, suffix, **more)
    if id_ is None:
        work.state.forget(key)
        return None
    work.state.set(key, id_)
    thing = kind.in_snapshot(work.snapshot)[id_]
    await tags.retag(work, id_, thing, work.desired.tags(suffix, **more))
    return thing


async def refresh(work: Work, kind: Kind, key: str) -> None:
    """Describe a resource that is in the state but not in the snapshot.

    Raises:
        CloudError: AWS refused.
    """
    recorded = work.state.get(key)
    if recorded is None or kind.one(work.snapshot, recorded) is not None:
        return
    for attempt in range(POLLS):
        if attempt:
            await asyncio.sleep(work.poll_seconds)
        if await described(work, kind, recorded) is not None:
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
    if not things:
        return None
    kind.in_snapshot(work.snapshot)[id_] = things[0]
    return things[0]


def remember(work: Work, kind: Kind, key: str, thing: JsonObject) -> str:
    """Record a newly created resource at once; return its id."""
    id_: str = thing[kind.id]
    work.state.created(key, id_)
    kind.in_snapshot(work.snapshot)[id_] = thing
    return id_
