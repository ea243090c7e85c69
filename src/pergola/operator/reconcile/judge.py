"""Whether a Garden can be reconciled at all: it may have been written while admission was off."""

from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.landscape.errors import OperatorError
from pergola.garden.rules.validation import Facts, check_garden


class GardenInvalid(OperatorError):
    """A Garden violates rules that admission would have enforced."""


def check(garden: Garden, *, any_version: bool) -> None:
    """Check that a Garden violates no admission rules.

    Raises:
        GardenInvalid: It does; the text lists all findings.
    """
    # A missing extension has a task that waits for it.
    named = frozenset(extension.type for extension in garden.spec.extensions)
    found = list(map(str, check_garden(garden, Facts(named, any_version))))
    if found:
        raise GardenInvalid(f"the Garden is invalid: {'; '.join(found)}")
