"""Tests against a real API server, for this project and for others.

The pytest plugin `pergola` is installed with the package and offers the fixtures of
`pergola.testing.plugin`: `cluster_client` and `namespace` are all that most tests need. It starts
nothing, and imports almost nothing, until a test uses one; so do the names below.
`pergola.testing.extension_site` tests extensions.
"""

from typing import TYPE_CHECKING, Final

from pergola import lazy_names

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

_NAMES: Final = {
    "crds": ("install_kinds",),
    "network_site": ("give_shoot_access", "shoot_manager"),
    "waiting": ("running", "settled", "until", "until_gone"),
}

# pytest loads this package in every run.
__getattr__ = lazy_names(__name__, _NAMES)
