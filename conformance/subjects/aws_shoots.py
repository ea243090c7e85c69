"""Shoots on AWS: the verdict of admission, and the defaults."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import Answer
from conformance.questions import collected
from conformance.strategies.aws_shoots import BASES, FIELDS, LIFE, PROFILE, PROFILE_FIELDS
from conformance.strategies.fields import (
    ABSENT,
    Change,
    Fields,
    changed,
    changes,
    one_of_changed,
)
from conformance.subjects.aws_verdicts import OfAws, compared
from pergola.admission.draft import Draft
from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject, JsonValue, deletion_timestamp_of, map_at
from pergola.extensions.webhooks.shoots import network_of
from pergola.kube.patches import same
from pergola.providers.aws.shoot_defaults import OVERLAY, ROUTED_NETWORKS, mutate_shoot
from pergola.providers.aws.shoot_webhooks import AS_BEFORE, shoot_validator

_PROVIDER: Final = ("spec", "provider")
_DEFAULTED: Final = (
    ("spec", "networking", "providerConfig"),
    ("spec", "systemComponents", "nodeLocalDNS"),
    (*_PROVIDER, "infrastructureConfig", "enableMTUCustomizer"),
)
_OFF_IF_ABSENT: Final = (
    (*_PROVIDER, "controlPlaneConfig", "cloudControllerManager", "useCustomRouteController"),
    (*_PROVIDER, "controlPlaneConfig", "loadBalancerController", "enabled"),
)
_DECIDED: Final[tuple[tuple[str, JsonValue], ...]] = (
    ("spec.networking.pods", "10.250.192.0/20"),
    ("spec.networking.providerConfig.overlay", "text"),
    ("spec.networking", {"type": "other", "nodes": "10.250.0.0/16"}),
)
"""Fields of a Shoot with IPv6 whose differences are decided."""
_TYPE: Final = tuple((*_PROVIDER, "controlPlaneConfig", name) for name in ("apiVersion", "kind"))
_SHOOTS: Final = GroupVersionResource("core.gardener.cloud", "v1beta1", "shoots")


class AwsShoot(OfAws):
    """The verdict about a Shoot, and about its change."""

    name = "aws-shoot"
    title = "AWS: admission of Shoots"
    code = (
        "pergola.providers.aws.shoot_checks",
        "pergola.providers.aws.shoot_webhooks",
        "pergola.providers.aws.validation",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield collected Shoots, and some whose differences are decided."""
        yield from collected(self.name)
        for path, value in _DECIDED:
            yield {"object": changed(BASES[-1], [Change(path, value)]), "others": [PROFILE]}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Shoots with a few odd fields, and their CloudProfile."""
        profile = st.just(PROFILE) | one_of_changed([PROFILE], PROFILE_FIELDS, most=1)
        drawn = st.tuples(_shoots(FIELDS), profile)
        return drawn.map(lambda parts: {**parts[0], "others": [parts[1]]})

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts."""
        verdict = _verdict_of(question)
        before = map_at(question.get("old") or {}, "spec")
        is_known = any(each.endswith(AS_BEFORE) for each in verdict.warnings)
        is_as_before = is_known or same(before, question["object"]["spec"])
        deleted = deletion_timestamp_of(question["object"]) is not None
        note = " as before" * is_as_before + " while it is deleted" * deleted
        return compared(answer, verdict.causes, note=note)


class AwsShootDefaults(OfAws):
    """Defaults of a Shoot."""

    name = "aws-shoot-defaults"
    title = "AWS: defaults of Shoots"
    code = ("pergola.providers.aws.shoot_defaults",)

    def table(self) -> Iterator[JsonObject]:
        """Yield collected Shoots, and some whose differences are decided."""
        yield from collected(self.name)
        for path, value in _DECIDED:
            yield {"object": changed(BASES[-1], [Change(path, value)])}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Shoots with a few odd fields."""
        return _shoots(FIELDS, LIFE)

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the Shoots after the mutation."""
        if answer.outcome != "output":
            return
        theirs = answer.output
        after, draft = theirs["after"], Draft(theirs["before"])
        if deletion_timestamp_of(draft.object) is None:
            mutate_shoot(draft, theirs["old"])
        note = _note(draft.object)
        found = [
            *differences(_effective(after), _effective(draft.object), "effective"),
            *differences(_rest(theirs["before"]), _rest(draft.object), "rest"),
        ]
        for each in found:
            if (each.theirs, each.ours) != ("null", "{}"):
                yield msgspec.structs.replace(each, path=each.path + note)


def _note(shoot: JsonObject) -> str:
    if network_of(shoot) not in ROUTED_NETWORKS:
        return " of another plugin"
    overlay = Draft(shoot).get(*OVERLAY)
    enabled = overlay.get("enabled") if isinstance(overlay, dict) else None
    return "" if overlay is None or isinstance(enabled, bool) else " with an odd overlay"


def _effective(shoot: JsonObject) -> JsonObject:
    """Return the fields that have defaults; an absent one has its effective value."""
    found = Draft(shoot)
    effective = {".".join(path[-2:]): found.get(*path) for path in _DEFAULTED}
    effective["networking.providerConfig"] = effective["networking.providerConfig"] or {}
    for path in _OFF_IF_ABSENT:
        effective[".".join(path[-2:])] = found.get(*path) or False
    return effective


def _rest(shoot: JsonObject) -> JsonObject:
    """Return a Shoot without the fields that have defaults, and the type of a new config."""
    removed = [Change(".".join(path), ABSENT) for path in (*_DEFAULTED, *_OFF_IF_ABSENT, *_TYPE)]
    return changed(shoot, removed)


def _shoots(fields: Fields, life: Fields | None = None) -> SearchStrategy[JsonObject]:
    """Return Shoots, and the stored ones before a change, which may have a status."""
    of_stored = {**fields, **(life or {})}

    def created(base: JsonObject) -> SearchStrategy[JsonObject]:
        return changes(fields).map(lambda made: {"object": changed(base, made)})

    def updated(base: JsonObject) -> SearchStrategy[JsonObject]:
        return st.tuples(changes(of_stored, most=1), changes(of_stored)).map(
            lambda made: {
                "object": changed(changed(base, made[0]), made[1]),
                "old": changed(base, made[0]),
            }
        )

    return st.one_of([*map(created, BASES), *map(updated, BASES)])


def _verdict_of(question: JsonObject) -> Verdict:
    name = map_at(question["object"], "spec", "cloudProfile").get("name")
    profiles = [
        each
        for each in question.get("others", ())
        if "CloudProfile" in each["kind"] and each["metadata"]["name"] == name
    ]
    request = Request(
        uid="1",
        operation="UPDATE" if question.get("old") else "CREATE",
        kind=SHOOT,
        resource=_SHOOTS,
        namespace="garden-demo",
        name="blue",
        object=question["object"],
        old_object=question.get("old"),
    )
    found = shoot_validator(lambda _: profiles[0] if profiles else None)(request)
    if not isinstance(found, Verdict):
        raise AssertionError("the webhook reads nothing")
    return found
