"""Pergola: a Kubernetes control plane in Python."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

__version__ = "0.1.0"


def lazy_names(package: str, names: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package whose public names are defined in its modules.

    Importing one module of the package then imports no other.

    Args:
        package: its `__name__`.
        names: the names of each module, which is named relative to the package.
    """
    module_of = {name: module for module, each in names.items() for name in each}

    def getattr_(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return getattr_
