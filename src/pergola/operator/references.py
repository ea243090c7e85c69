"""Protection of the objects that the operator's objects name (spec 21 §4)."""

from typing import Final

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.controllers.references import Referrer, reference_protection
from pergola.garden.landscape import NAMESPACE
from pergola.operator.copies import Copies
from pergola.operator.extension.references import EXTENSION_REFERENCES
from pergola.operator.run.references import GARDEN_REFERENCES
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

REFERRERS: Final[tuple[Referrer, ...]] = (GARDEN_REFERENCES, EXTENSION_REFERENCES)
"""The kinds of objects that name Secrets and ConfigMaps in the garden's namespace."""


def protected_references(copies: Copies, *, metrics: Metrics, clock: Clock | None = None) -> Unit:
    """Return the controllers that protect the objects that Gardens and Extensions name.

    Args:
        copies: Contain all referrers, and the garden's Secrets and ConfigMaps.
    """
    return reference_protection(
        copies.client,
        {referrer: copies.of(referrer.gvk) for referrer in REFERRERS},
        {gvk.kind: copies.of(gvk, NAMESPACE) for gvk in (SECRET, CONFIG_MAP)},
        metrics=metrics,
        clock=clock,
    )
