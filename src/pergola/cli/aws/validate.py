"""`pergola aws validate`: validate a Shoot or an Infrastructure as admission would, offline."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.api.kinds import GARDENER_CORE
from pergola.cli.manifest_files import ManifestFileError, named, of_kind, read_objects
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.field_errors import Cause
    from pergola.api.objects import JsonObject, JsonValue
    from pergola.extension_api.cluster import Cluster

_AWS: Final = "aws"
_EXTENSIONS: Final = "extensions.gardener.cloud"


def validate(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)],
    old: str = "",
    output: ReportOutput = "text",
) -> None:
    """Validate a Shoot or an Infrastructure as admission would; needs neither AWS nor a cluster.

    Prints all findings, each with its path; exits with 1 if there are any.

    Parameters
    ----------
    file
        Manifests with Shoots or Infrastructures, or - for the standard input. Zones come from a
        CloudProfile in the same file; ranges and IP families of an Infrastructure from a Cluster.
    old
        Manifests with the current objects, to validate the change as well.
    """
    found = _findings(read_objects(file), read_objects(old) if old else [], file)
    rows: list[JsonValue] = [
        {"object": named(obj), **cause._asdict()} for obj, causes in found for cause in causes
    ]
    show(output, data=rows, text=lambda: _print_text(found))
    if any(causes for _, causes in found):
        sys.exit(1)


def _findings(
    objects: "list[JsonObject]", old: "list[JsonObject]", file: str
) -> "list[tuple[JsonObject, list[Cause]]]":
    shoots = [obj for obj in of_kind(objects, GARDENER_CORE, "Shoot") if _cloud_of(obj) == _AWS]
    infrastructures = [
        obj for obj in of_kind(objects, _EXTENSIONS, "Infrastructure") if _type_of(obj) == _AWS
    ]
    if not shoots and not infrastructures:
        raise ManifestFileError(
            f"{file} must contain a Shoot or an Infrastructure on AWS, but contains "
            f"{', '.join(map(named, objects)) or 'nothing'}"
        )
    found = [(obj, list(_of_shoot(obj, _before(obj, old), objects))) for obj in shoots]
    found += [
        (obj, list(_of_infrastructure(obj, _before(obj, old), objects))) for obj in infrastructures
    ]
    return found


def _of_shoot(
    shoot: "JsonObject", old: "JsonObject | None", beside: "list[JsonObject]"
) -> "Iterator[Cause]":
    """Check a Shoot after its defaults were set."""
    from pergola.admission.draft import Draft
    from pergola.providers.aws.shoot_checks import check_shoot
    from pergola.providers.aws.shoot_defaults import mutate_shoot

    draft = Draft(shoot)
    mutate_shoot(draft, old)
    return check_shoot(draft.object, old, _cloud_profile(shoot, beside))


def _of_infrastructure(
    infrastructure: "JsonObject", old: "JsonObject | None", beside: "list[JsonObject]"
) -> "Iterator[Cause]":
    from pergola.api.objects import map_at
    from pergola.providers.aws.validation import ShootFacts, check_written, facts_of

    cluster = _cluster(infrastructure, beside)
    shoot = cluster.shoot if cluster else None
    if shoot is None:
        say(
            f"{named(infrastructure)} has no Cluster with a Shoot: assuming IPv4, and skipping "
            "the checks against ranges and zones",
            file=sys.stderr,
        )
    profile = cluster.cloud_profile if cluster else None
    facts = facts_of(shoot, profile) if shoot else ShootFacts()
    before = map_at(old or {}, "spec").get("providerConfig")
    config = map_at(infrastructure, "spec").get("providerConfig")
    return check_written(config, facts, before, path="spec.providerConfig")


def _cloud_profile(shoot: "JsonObject", beside: "list[JsonObject]") -> "JsonObject | None":
    from pergola.api.objects import map_at, name_of

    spec = map_at(shoot, "spec")
    reference = map_at(spec, "cloudProfile")
    kind = str(reference.get("kind") or "CloudProfile")
    name = reference.get("name") or spec.get("cloudProfileName")
    profiles = [obj for obj in of_kind(beside, GARDENER_CORE, kind) if name_of(obj) == name]
    return profiles[0] if profiles else None


def _cluster(infrastructure: "JsonObject", beside: "list[JsonObject]") -> "Cluster | None":
    from pergola.api.objects import name_of, namespace_of
    from pergola.extension_api.cluster import Cluster, MalformedCluster

    for obj in of_kind(beside, _EXTENSIONS, "Cluster"):
        if name_of(obj) == namespace_of(infrastructure):
            try:
                return Cluster.from_object(obj)
            except MalformedCluster as error:
                raise ManifestFileError(str(error)) from None
    return None


def _before(obj: "JsonObject", old: "list[JsonObject]") -> "JsonObject | None":
    """Return the current object; the only one of its kind may have another name."""
    from pergola.api.objects import GroupVersionKind, Key

    if not old:
        return None
    gvk = GroupVersionKind.of(obj)
    same_kind = of_kind(old, gvk.group, gvk.kind)
    for candidate in same_kind:
        if Key.of(candidate) == Key.of(obj):
            return candidate
    if len(same_kind) == 1:
        return same_kind[0]
    raise ManifestFileError(f"--old does not contain {named(obj)}")


def _cloud_of(shoot: "JsonObject") -> object:
    from pergola.api.objects import map_at

    return map_at(shoot, "spec", "provider").get("type")


def _type_of(infrastructure: "JsonObject") -> object:
    from pergola.api.objects import map_at

    return map_at(infrastructure, "spec").get("type")


def _print_text(found: "list[tuple[JsonObject, list[Cause]]]") -> None:
    """Print findings, without names if there is only one object."""
    for obj, causes in found:
        for cause in causes:
            say(f"{named(obj)}: {cause}" if len(found) > 1 else cause)
        if not causes:
            say(f"{named(obj)} is valid")
