"""Objects of the garden on AWS: the verdict of admission, and the flavors of images."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.documents import client_of
from conformance.oracles import Answer
from conformance.questions import collected
from conformance.strategies.aws_garden import FLAVORS, OBJECTS
from conformance.subjects.aws_verdicts import OfAws, reviewed
from pergola.admission.draft import Draft
from pergola.admission.review import Verdict
from pergola.api.objects import (
    JsonObject,
    JsonValue,
    deletion_timestamp_of,
    map_at,
    maps_at,
)
from pergola.extensions.garden import Garden
from pergola.providers.aws.admission.webhooks import admission_webhooks

_ABSENT: Final = "absent"


class AwsGardenObjects(OfAws):
    """The verdict about an object of the garden, and about its change.

    Findings must have the same types and fields. The original's errors without a field are equal
    to any finding, and so is a crash.
    """

    name = "aws-garden-objects"
    title = "AWS: admission of CloudProfiles, Seeds, backups and credentials"
    code = (
        "pergola.providers.aws.admission.validators",
        "pergola.providers.aws.validation.backup_bucket",
        "pergola.providers.aws.validation.capabilities",
        "pergola.providers.aws.validation.cloud_profile",
        "pergola.providers.aws.validation.credentials",
        "pergola.providers.aws.validation.namespaced_cloud_profile",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield collected objects."""
        yield from collected(self.name)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects of each kind with a few odd fields, and what they refer to."""
        return OBJECTS

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts."""
        ours = Counter(
            f"{cause.reason} {cause.field}" for cause in verdict_of(question, "validator").causes
        )
        refused = maps_at(answer.output, "refused")
        theirs = Counter(f"{each['type']} {each['field']}" for each in refused)
        has_text = any(each["type"] == "InternalError" for each in refused)
        if ours and (has_text or answer.outcome != "output"):
            return
        note = _note(question)
        for found in sorted((theirs - ours) | (ours - theirs)):
            there, here = theirs[found], ours[found]
            yield Difference(
                f"{found}{note}", str(there) if there else _ABSENT, str(here) if here else _ABSENT
            )


class AwsImageFlavors(OfAws):
    """The flavors of images in CloudProfiles, and the merged images of NamespacedCloudProfiles."""

    name = "aws-image-flavors"
    title = "AWS: flavors of images in CloudProfiles"
    code = ("pergola.providers.aws.admission.image_flavors",)

    def table(self) -> Iterator[JsonObject]:
        """Yield collected profiles."""
        yield from collected(self.name)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return CloudProfiles and NamespacedCloudProfiles with a few odd fields."""
        return FLAVORS

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the profiles after the mutation, regardless of the order of images."""
        theirs = answer.output
        asked = {**question, "object": theirs.get("before", question["object"])}
        verdict = verdict_of(asked, "mutator")
        if answer.outcome != "output" or not verdict.allowed:
            if answer.outcome == "output" or verdict.allowed:
                yield Difference("object", answer.outcome, verdict.message or "changed")
            return
        draft = Draft(asked["object"])
        for edit in verdict.edits:
            draft.set(_path_of(edit.path), edit.value, edit.because)
        yield from differences(_comparable(theirs["after"]), _comparable(draft.object))


def verdict_of(question: JsonObject, webhook: str) -> Verdict:
    """Return the verdict of the webhook with this name, or of the one for Secrets."""
    garden = Garden(client_of(question.get("others") or ()))
    served = {each.short_name: each for each in admission_webhooks(garden)}
    is_secret = question["object"].get("kind") == "Secret"
    return reviewed(served["secrets" if is_secret else webhook], question)


def _note(question: JsonObject) -> str:
    obj = question["object"]
    backup = map_at(obj, "spec").get("backup")
    is_deleted = deletion_timestamp_of(obj) is not None
    is_elsewhere = isinstance(backup, dict) and backup.get("provider") != "aws"
    return " while it is deleted" * is_deleted + " on another cloud" * is_elsewhere


def _path_of(pointer: str) -> tuple[str | int, ...]:
    return tuple(int(each) if each.isdigit() else each for each in pointer.split("/")[1:])


def _comparable(profile: JsonObject) -> JsonValue:
    """Return a profile with the images of its status sorted, and without nulls."""
    status = map_at(profile, "status", "cloudProfileSpec", "providerConfig")
    images = [
        {
            **image,
            "versions": sorted(maps_at(image, "versions"), key=lambda v: str(v.get("version"))),
        }
        for image in sorted(maps_at(status, "machineImages"), key=lambda i: str(i.get("name")))
    ]
    found = {"spec": profile["spec"], "images": images}
    return _with_lists(found)


def _with_lists(value: JsonValue) -> JsonValue:
    """Return a value with a list for null and an empty map, which Go writes as it pleases."""
    if isinstance(value, dict) and value:
        return {name: _with_lists(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_lists(each) for each in value]
    return value if value not in (None, {}) else []
