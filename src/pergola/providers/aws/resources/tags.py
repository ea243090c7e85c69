"""Tags in AWS: compared first, written only where they differ (spec 30 §3.1, §8.2)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.resources.step import Work

_OF_AWS = "aws:"


def specification(kind: str, tags: Mapping[str, str]) -> list[JsonObject]:
    """Return the tags for the request that creates a resource of a type, such as `vpc`."""
    return [{"ResourceType": kind, "Tags": as_list(tags)}]


def as_list(tags: Mapping[str, str]) -> list[JsonObject]:
    """Return tags in AWS's format."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def advice(region: str, things: Iterable[str], tags: Mapping[str, str]) -> str:
    """Return the command that adds tags to resources."""
    pairs = " ".join(f"Key={key},Value={value}" for key, value in tags.items())
    return f"aws ec2 create-tags --region {region} --resources {' '.join(things)} --tags {pairs}"


def only_one(work: Work, things: Mapping[str, JsonObject], tags: Mapping[str, str]) -> str | None:
    """Return the id of the one resource with all of our tags; None if none has them.

    An older form of the cluster tag also counts.

    Raises:
        ExtensionError: there are several: nothing is guessed or deleted.
    """
    expected = {key: tags[key] for key in tags if key != work.desired.cluster_tag}
    found = [
        name
        for name, thing in things.items()
        if work.desired.owns(tags_of(thing)) and expected.items() <= tags_of(thing).items()
    ]
    if len(found) > 1:
        raise ExtensionError(
            f"multiple matches: {', '.join(sorted(found))} all have the tags of "
            f'"{expected["Name"]}"; delete those that the cluster does not use',
            Code.CONFIGURATION_PROBLEM,
        )
    return found[0] if found else None


def differing(
    work: Work, thing: JsonObject, tags: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the tags of our resource to write, and the keys to remove."""
    present = tags_of(thing)
    changed = {key: value for key, value in tags.items() if present.get(key) != value}
    return changed, [key for key in present if key not in tags and not _stays(work, key)]


async def retag(work: Work, name: str, thing: JsonObject, tags: Mapping[str, str]) -> None:
    """Set exactly these tags on our resource, except for those that the config ignores."""
    present = tags_of(thing)
    changed, unknown = differing(work, thing, tags)
    if unknown:
        await work.aws.call(
            "ec2", "DeleteTags", Resources=[name], Tags=[{"Key": key} for key in unknown]
        )
    if changed:
        await work.aws.call("ec2", "CreateTags", Resources=[name], Tags=as_list(changed))
    if unknown or changed:
        kept = {key: value for key, value in present.items() if key not in unknown}
        thing["Tags"] = as_list({**kept, **tags})


async def add_tags(
    work: Work, things: Iterable[tuple[str, JsonObject, Mapping[str, str]]]
) -> dict[str, list[str]]:
    """Add missing tags to resources of others, with one request for each set of tags.

    Returns:
        The added keys, by the id of the resource.
    """
    missing: dict[tuple[tuple[str, str], ...], list[tuple[str, JsonObject]]] = defaultdict(list)
    for name, thing, tags in things:
        present = tags_of(thing)
        lacking = tuple(sorted(tag for tag in tags.items() if present.get(tag[0]) != tag[1]))
        if lacking:
            missing[lacking].append((name, thing))
    added: dict[str, list[str]] = defaultdict(list)
    for lacking, several in missing.items():
        names = [name for name, _ in several]
        await work.aws.call("ec2", "CreateTags", Resources=names, Tags=as_list(dict(lacking)))
        for name, thing in several:
            thing["Tags"] = as_list({**tags_of(thing), **dict(lacking)})
            added[name] += [key for key, _ in lacking]
    return dict(added)


async def remove_tag(work: Work, names: Iterable[str], key: str, value: str | None = None) -> None:
    """Remove a tag from resources that may be deleted; by key alone unless a value is given."""
    tag = {"Key": key} if value is None else {"Key": key, "Value": value}
    for name in names:
        try:
            await work.aws.call("ec2", "DeleteTags", Resources=[name], Tags=[tag])
        except NotFound:
            continue


def _stays(work: Work, key: str) -> bool:
    ignored = work.desired.config.ignore_tags
    return key.startswith(_OF_AWS) or (
        ignored is not None and (key in ignored.keys or key.startswith(tuple(ignored.key_prefixes)))
    )
