"""Actuators by reference: what an author names on the command line."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Actuator

_NEEDED: Final = ("kind", "type", "name")


class BadReference(ExtensionError):
    """A reference names no actuator; the text says what to write instead."""


def load_actuator(reference: str) -> Actuator:
    """The actuator of a reference: `module:Class` or `path/to/file.py:Class`.

    The class may be left out where there is only one; in its place may also be an instance.

    Raises:
        BadReference: there is no such thing, or it is no actuator.
    """
    place, _, name = reference.partition(":")
    if not place:
        raise BadReference(
            f'"{reference}" names no module; write module:Actuator or file.py:Actuator'
        )
    module = _module(place)
    found = _attribute(module, place, name) if name else _only(module, place)
    return _instance(found, f"{place}:{name or getattr(found, '__name__', '')}")


def _module(place: str) -> ModuleType:
    path = Path(place)
    is_file = place.endswith(".py") or len(path.parts) > 1
    try:
        return _from_file(path) if is_file else _by_name(place)
    except BadReference:
        raise
    except Exception as error:  # whatever the author's module stumbles over when it is imported
        where = _where(error)
        text = f"{type(error).__name__}: {error}"
        raise BadReference(f"{place} cannot be imported: {text}{where}") from error


def _by_name(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that the author's module needs
        raise BadReference(
            f'there is no module "{error.name}"; install it, or name a file, such as ./{name}.py'
        ) from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadReference(f"there is no file {path}")
    path = path.resolve()
    name = path.stem if path.stem not in sys.modules else f"extension_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadReference(f"{path} is no Python file; its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    # Registered, and with its neighbours in reach, as if Python had been started with it.
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _attribute(module: ModuleType, place: str, name: str) -> object:
    if not hasattr(module, name):
        known = ", ".join(sorted(cls.__name__ for cls in _actuators(module)))
        hint = f"; its actuators are: {known}" if known else ", and no actuator at all"
        raise BadReference(f'{place} has no "{name}"{hint}')
    found: object = getattr(module, name)
    return found


def _only(module: ModuleType, place: str) -> type[Actuator]:
    found = list(_actuators(module))
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{place}:{cls.__name__}" for cls in found)
    if names:
        raise BadReference(f"{place} has several actuators; name one of {names}")
    raise BadReference(f"{place} has no actuator: a class that derives from pergola's Actuator")


def _actuators(module: ModuleType) -> Iterator[type[Actuator]]:
    """The complete actuators that the module itself defines."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Actuator)
            and value.__module__ == module.__name__
            and not _missing(value)
        ):
            yield value


def _instance(found: object, title: str) -> Actuator:
    if isinstance(found, type) and issubclass(found, Actuator):
        try:
            actuator = found()
        except TypeError as error:
            raise BadReference(
                f"{title} cannot be made without arguments ({error}); name an instance instead"
            ) from None
    elif isinstance(found, Actuator):
        actuator = found
    else:
        raise BadReference(f"{title} is no actuator; it must derive from pergola's Actuator")
    missing = _missing(type(actuator), actuator)
    if missing:
        raise BadReference(f"{title} does not say its {', '.join(missing)}; set it in the class")
    return actuator


def _missing(cls: type[Actuator], instance: Actuator | None = None) -> list[str]:
    where: object = cls if instance is None else instance
    return [name for name in _NEEDED if not getattr(where, name, "")]


def _where(error: BaseException) -> str:
    """The line at which an exception was raised."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" ({error.filename}:{error.lineno})" if error.filename else ""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})"
