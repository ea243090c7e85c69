"""Pergola renders what the original renders, except for the fields that the documentation names."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.api.objects import JsonValue
from pergola.providers.networking.calico import Calico
from pergola.testing.calico_original import (
    VARIANTS,
    calico_plan,
    original_calico,
    rendered_fields,
)

PAGE: Final = Path(__file__).parents[5] / "docs" / "calico-differences.md"


class Difference(NamedTuple):
    """An object and a field; in the documentation, both may be patterns."""

    title: str
    field: str

    def covers(self, other: "Difference") -> bool:
        return fnmatchcase(other.title, _escaped(self.title)) and fnmatchcase(
            other.field, _escaped(self.field)
        )


def _escaped(pattern: str) -> str:
    """Brackets are part of a field's path here."""
    return pattern.replace("[", "[[]")


def documented() -> list[Difference]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [Difference(row[1].strip(), row[2].strip().strip("`")) for row in rows[2:]]


def differences(variant: str) -> Iterator[Difference]:
    theirs = original_calico(variant)
    ours = rendered_fields(list(Calico().render(calico_plan(variant)).shoot))
    for title in theirs.keys() | ours.keys():
        one, other = theirs.get(title, {}), ours.get(title, {})
        for field in one.keys() | other.keys():
            if not same(one.get(field), other.get(field)):
                yield Difference(title, field)


def same(theirs: JsonValue, ours: JsonValue) -> bool:
    """Texts that the table leaves out are equal if both sides have one."""
    return ours is not None if theirs == "…" else theirs == ours


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_difference_from_the_original_is_documented(variant: str) -> None:
    known = documented()

    unknown = [d for d in differences(variant) if not any(row.covers(d) for row in known)]

    assert sorted(unknown) == []


def test_every_documented_difference_exists() -> None:
    found = {difference for variant in VARIANTS for difference in differences(variant)}

    idle = [row for row in documented() if not any(row.covers(d) for d in found)]

    assert idle == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_of_the_original_is_rendered(variant: str) -> None:
    ours = rendered_fields(list(Calico().render(calico_plan(variant)).shoot))

    assert original_calico(variant).keys() - ours.keys() == set()


def test_names_labels_and_selectors_are_the_originals() -> None:
    kept = ("labels", "spec.selector", "spec.template.metadata.labels", "roleRef", "pod.volumes")
    for variant in VARIANTS:
        for difference in differences(variant):
            if difference.title in original_calico(variant):
                assert not difference.field.startswith(kept), difference
