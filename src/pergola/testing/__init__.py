"""Tests against a real API server, for this project and for others.

The pytest plugin `pergola` is installed with the package and offers the fixtures of
`pergola.testing.plugin`: `cluster_client` and `namespace` are all that most tests need. It starts
nothing, and imports almost nothing, until a test uses one; so do the names below.
`pergola.testing.extension_site` tests extensions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.testing.crds import install_kinds
    from pergola.testing.network_site import give_shoot_access, shoot_manager
    from pergola.testing.waiting import running, settled, until, until_gone

__all__ = [
    "give_shoot_access",
    "install_kinds",
    "running",
    "settled",
    "shoot_manager",
    "until",
    "until_gone",
]

_MODULES: Final = {
    "give_shoot_access": "network_site",
    "install_kinds": "crds",
    "running": "waiting",
    "settled": "waiting",
    "shoot_manager": "network_site",
    "until": "waiting",
    "until_gone": "waiting",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is used first: pytest loads this package in every run."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
