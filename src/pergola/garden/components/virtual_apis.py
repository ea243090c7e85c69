"""The APIs that the virtual cluster does not serve, because it runs no pods (spec 20 §15.2)."""

from collections.abc import Mapping
from typing import Final

from pergola.garden.landscape import Landscape

_DISABLED: Final = (
    "apps/v1",
    "autoscaling/v2",
    "batch/v1",
    "policy/v1",
    "storage.k8s.io/v1/csinodes",
)


def runtime_config(landscape: Landscape) -> Mapping[str, bool]:
    """Return whether each API is served, by API; the Garden can override each."""
    return dict.fromkeys(_DISABLED, False) | landscape.api_server.runtime_config
