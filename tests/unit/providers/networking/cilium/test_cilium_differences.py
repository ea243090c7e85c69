"""Pergola renders the same as the original, except for the documented fields."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.providers.networking.cilium import Cilium
from tests.support import originals
from tests.support.cilium_original import ORIGINAL, VARIANTS, original_plan
from tests.support.originals import Difference, documented, rendered_fields

PAGE: Final = Path(__file__).parents[5] / "docs" / "reference" / "cilium-differences.md"
KEPT: Final = ("roleRef", "spec.selector", "spec.clusterIP", "immutable")
"""Fields that the API server never lets change, or by which others find an object."""


def rendered(variant: str) -> dict[str, originals.Fields]:
    return rendered_fields(list(Cilium().render(original_plan(variant)).shoot))


def differences(variant: str) -> Iterator[Difference]:
    return originals.differences(ORIGINAL.variant(variant), rendered(variant))


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
def test_every_object_of_the_original_is_rendered_or_replaced(variant: str) -> None:
    known = documented(PAGE)

    missing = ORIGINAL.variant(variant).keys() - rendered(variant).keys()

    assert all(any(row.covers(Difference(name, "*")) for row in known) for name in missing)


@pytest.mark.parametrize("variant", VARIANTS)
def test_selectors_roles_and_addresses_match_the_original(variant: str) -> None:
    shared = ORIGINAL.variant(variant).keys() & rendered(variant).keys()

    assert not [d for d in differences(variant) if d.title in shared and d.field.startswith(KEPT)]
