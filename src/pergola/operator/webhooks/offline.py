"""Admission of manifests without an API server: schema, defaults, and the webhooks' rules.

Nothing is read here. Facts that a cluster would provide are passed in.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pergola.admission import Draft
from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import (
    EXTENSION,
    GARDEN,
    Extension,
    Garden,
    default_garden,
    garden_from,
)
from pergola.api.schema import Finding, Malformed, validate
from pergola.api.schema.nulls import without_nulls
from pergola.api.schema.structural import schema_of
from pergola.garden.rules.references import types_for_gardens
from pergola.garden.rules.validation import Facts, check_garden, check_garden_update
from pergola.operator.webhooks.audit_policy import check_config_map, policy_problems, references_of
from pergola.operator.webhooks.extension import defaulting
from pergola.operator.webhooks.extension.review import check_extension
from pergola.operator.webhooks.garden.review import cause_of, creation_problem
from pergola.operator.webhooks.garden.warnings import warnings_about
from pergola.operator.webhooks.namespace import GARDEN_NAMESPACE

KINDS: Final = (GARDEN, EXTENSION)
"""The kinds that are checked wherever they occur."""

_Identity = tuple[GroupKind, Key]


class Stored(NamedTuple):
    """The objects that exist in addition to the manifests.

    Attributes:
        is_complete: Whether all Gardens, Extensions and referenced ConfigMaps of a cluster are
            included, so that a missing one does not exist.
    """

    objects: Sequence[JsonObject] = ()
    is_complete: bool = False


class Checked(NamedTuple):
    """An object, and the verdict of admission about it."""

    obj: JsonObject
    causes: tuple[Cause, ...]
    warnings: tuple[str, ...]


def check_manifests(
    objects: Sequence[JsonObject], stored: Stored, now: datetime
) -> Iterator[Checked]:
    """Yield the verdict about each Garden, each Extension, and each audit policy of a Garden."""
    admission = _Admission(objects, stored, now)
    policies = admission.policies()
    for obj in objects:
        gvk = GroupVersionKind.of(obj)
        if gvk == GARDEN:
            yield admission.garden(obj)
        elif gvk == EXTENSION:
            yield admission.extension(obj)
        elif gvk == CONFIG_MAP and Key.of(obj) in policies:
            yield Checked(obj, tuple(check_config_map(obj)), ())


class _Admission:
    """The rules, with their lookups."""

    def __init__(self, objects: Sequence[JsonObject], stored: Stored, now: datetime) -> None:
        self._objects = objects
        self._before = _by_identity(stored.objects)
        self._beside = {**self._before, **_by_identity(objects)}
        self._is_complete = stored.is_complete
        self._now = now

    def garden(self, obj: JsonObject) -> Checked:
        stored = self._before.get(_identity(obj))
        obj = default_garden(_with_status_of(stored, obj) if stored is not None else obj)
        errors, warnings = _schema_findings(validate(schema_of(Garden), obj))
        # as in an API server, no other rule is applied to an object that violates its schema
        if errors:
            return Checked(obj, errors, warnings)
        garden, old = garden_from(obj), _readable(stored)
        facts, unknown = self._facts(garden)
        policies, missing = self._policies_of(obj)
        causes = [*self._creation(obj)] if stored is None else []
        if old is None:
            causes += check_garden(garden, facts)
        else:
            causes += check_garden_update(garden, old, facts)
        causes += policies
        found = warnings_about(garden, old, self._now)
        return Checked(obj, tuple(causes), (*warnings, *found, *unknown, *missing))

    def extension(self, obj: JsonObject) -> Checked:
        schema = schema_of(Extension)
        errors, warnings = _schema_findings(validate(schema, obj))
        if errors:
            return Checked(obj, errors, warnings)
        draft = Draft(without_nulls(schema, obj))
        defaulting.fill(draft)
        old = self._before.get(_identity(obj))
        return Checked(obj, tuple(check_extension(draft.object, old)), warnings)

    def policies(self) -> set[Key]:
        """Return the ConfigMaps that Gardens reference as audit policies."""
        gardens = self._of(GARDEN)
        names = {name for garden in gardens for name in references_of(garden).values()}
        return {Key(GARDEN_NAMESPACE, name) for name in names}

    def _creation(self, obj: JsonObject) -> Iterator[Cause]:
        others = [each for each in self._of(GARDEN) if name_of(each) != name_of(obj)]
        if problem := creation_problem(obj, others):
            yield forbidden("metadata", problem)

    def _facts(self, garden: Garden) -> tuple[Facts, list[str]]:
        """Return the facts that the rules need, and warnings about unknown ones."""
        extensions = self._of(EXTENSION)
        if extensions or self._is_complete or not garden.spec.extensions:
            return Facts(types_for_gardens(extensions)), []
        unknown = (
            "spec.extensions: no Extension is given, so it was not checked that these types are "
            "served"
        )
        return Facts(frozenset(each.type for each in garden.spec.extensions)), [unknown]

    def _policies_of(self, obj: JsonObject) -> tuple[list[Cause], list[str]]:
        causes: list[Cause] = []
        unknown: list[str] = []
        for path, name in references_of(obj).items():
            key = Key(GARDEN_NAMESPACE, name)
            found = self._beside.get((CONFIG_MAP.group_kind, key))
            if found is not None:
                causes += [invalid(path, name, problem) for problem in policy_problems(found)]
            elif self._is_complete:
                causes.append(invalid(path, name, f"ConfigMap {key} does not exist"))
            else:
                unknown.append(f"{path}: ConfigMap {key} is not given, so it was not checked")
        return causes, unknown

    def _of(self, gvk: GroupVersionKind) -> list[JsonObject]:
        return [obj for (kind, _), obj in self._beside.items() if kind == gvk.group_kind]


def _with_status_of(stored: JsonObject, obj: JsonObject) -> JsonObject:
    """Return an update as an API server sees it: without the status."""
    changed = {name: value for name, value in obj.items() if name != "status"}
    return {**changed, "status": stored["status"]} if "status" in stored else changed


def _readable(stored: JsonObject | None) -> Garden | None:
    """Return a stored Garden; None also if it violates its schema, since it may be repaired."""
    try:
        return garden_from(stored) if stored is not None else None
    except Malformed:
        return None


def _schema_findings(
    found: Sequence[Finding],
) -> tuple[tuple[Cause, ...], tuple[str, ...]]:
    errors = tuple(cause_of(finding) for finding in found if finding.severity == "error")
    return errors, tuple(str(finding) for finding in found if finding.severity == "warning")


def _by_identity(objects: Sequence[JsonObject]) -> Mapping[_Identity, JsonObject]:
    return {_identity(obj): obj for obj in objects}


def _identity(obj: JsonObject) -> _Identity:
    return GroupVersionKind.of(obj).group_kind, Key.of(obj)
