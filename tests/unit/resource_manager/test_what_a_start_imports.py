"""A resource manager imports what its configuration enables."""

import pkgutil
import subprocess
import sys
from functools import cache
from typing import Final

import pytest

from pergola.resource_manager import controllers

_PRINT: Final = "import sys; import pergola.resource_manager.app; print(*sys.modules)"
_ALWAYS: Final = {
    *("garbage_collector", "health", "health_report", "health_verdict"),
    *("held_secrets", "managed_resource", "secret"),
}
"""The modules of the controllers that every resource manager runs."""
_OPTIONAL: Final = {each.name for each in pkgutil.iter_modules(controllers.__path__)} - _ALWAYS


@cache
def imported() -> frozenset[str]:
    """Return the modules that a start imports before it reads its configuration."""
    ran = subprocess.run((sys.executable, "-c", _PRINT), capture_output=True, text=True, check=True)
    return frozenset(ran.stdout.split())


@pytest.mark.parametrize("name", sorted(_OPTIONAL))
def test_an_optional_controller_is_imported_when_it_runs(name: str) -> None:
    assert f"{controllers.__name__}.{name}" not in imported()


def test_the_controllers_of_managed_resources_are_imported() -> None:
    assert {f"{controllers.__name__}.{name}" for name in _ALWAYS} <= imported()


@pytest.mark.parametrize("name", ["cryptography", "pergola.admission", "pergola.controllers"])
def test_no_library_of_an_optional_part_is_imported_with_it(name: str) -> None:
    parts = {"pergola.controllers", "pergola.controllers.condition_metrics"}
    found = {each for each in imported() if f"{each}.".startswith(f"{name}.")}
    assert found <= parts
