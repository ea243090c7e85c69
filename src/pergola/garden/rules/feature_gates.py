"""Rules about feature gates of Gardener (spec 21 §7.4)."""

from collections.abc import Iterator, Mapping

from pergola.api.field_errors import Cause, forbidden
from pergola.api.known.feature_gate_rules import check_lock
from pergola.garden.rules.gardener_names import FEATURE_GATES


def check_gardener_feature_gates(gates: Mapping[str, bool], path: str) -> Iterator[Cause]:
    """Yield the findings about feature gates of a Gardener component."""
    for name, value in gates.items():
        if name not in FEATURE_GATES:
            yield forbidden(f"{path}.{name}", "not supported by Gardener")
        else:
            yield from check_lock(value, FEATURE_GATES[name], f"{path}.{name}")
