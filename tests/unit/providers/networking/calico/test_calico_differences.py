"""Pergola renders the same as the original, except for the documented fields."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.providers.networking.calico import Calico
from tests.support import originals
from tests.support.calico_original import ORIGINAL, VARIANTS, calico_plan
from tests.support.originals import Difference, documented, rendered_fields

PAGE: Final = Path(__file__).parents[5] / "docs" / "reference" / "calico-differences.md"


def differences(variant: str) -> Iterator[Difference]:
    ours = rendered_fields(list(Calico().render(calico_plan(variant)).shoot))
    return originals.differences(ORIGINAL.variant(variant), ours)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_difference_from_the_original_is_documented(variant: str) -> None:
    known = documented(PAGE)

    unknown = [d for d in differences(variant) if not any(row.covers(d) for row in known)]

    assert sorted(unknown) == []


def test_every_documented_difference_exists() -> None:
    found = {difference for variant in VARIANTS for difference in differences(variant)}

    idle = [row for row in documented(PAGE) if not any(row.covers(d) for d in found)]

    assert idle == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_of_the_original_is_rendered(variant: str) -> None:
    ours = rendered_fields(list(Calico().render(calico_plan(variant)).shoot))

    assert ORIGINAL.variant(variant).keys() - ours.keys() == set()


def test_names_labels_and_selectors_match_the_original() -> None:
    kept = ("labels", "spec.selector", "spec.template.metadata.labels", "roleRef", "pod.volumes")
    for variant in VARIANTS:
        for difference in differences(variant):
            if difference.title in ORIGINAL.variant(variant):
                assert not difference.field.startswith(kept), difference
