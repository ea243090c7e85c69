"""Packages whose public names are imported when they are first used."""

import subprocess
import sys
from types import ModuleType

import pytest

import pergola.runtime
import pergola.testing

PACKAGES = [pergola.runtime, pergola.testing]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each.__name__)
def test_every_public_name_can_be_imported(package: ModuleType) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each.__name__)
def test_a_name_that_does_not_exist_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018 - looked up


@pytest.mark.parametrize("package", PACKAGES, ids=lambda each: each.__name__)
def test_a_package_imports_none_of_its_modules(package: ModuleType) -> None:
    code = f"import sys, {package.__name__}; print(*sys.modules)"
    ran = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert [name for name in ran.stdout.split() if name.startswith(f"{package.__name__}.")] == []
