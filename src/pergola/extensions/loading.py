"""Actuators by name or reference, as on the command line."""

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Actuator

ENTRY_POINTS: Final = "pergola.extensions"
"""The entry point group in which packages register their extensions.

The value is an actuator, or a sequence of them: `calico = "my.package:Calico"`.
"""


class BadReference(ExtensionError):
    """A reference names no complete actuator; the text says what to write instead."""


def load_actuators(references: Iterable[str]) -> list[Actuator]:
    """A reference does not lead to a complete actuator; the text says what to write instead.

    Args:
        references: names of installed extensions such as `calico`, `module:Class`, or
            `path/to/file.py:Class`. The class may be omitted if there is only one, and an instance
            or a sequence of actuators may be named instead.

    Raises:
        BadReference: a reference leads to nothing, or to something other than a complete actuator.
    """
    return [actuator for reference in references for actuator in _loaded(reference)]


def load_actuator(reference: str) -> Actuator:
    """Return the only actuator of a reference; see `load_actuators`.

    Raises:
        BadReference: see `load_actuators`, or there are several.
    """
    found = load_actuators([reference])
    if len(found) != 1:
        names = ", ".join(actuator.name for actuator in found)
        raise BadReference(f"{reference} names {len(found)} actuators ({names}); name one of them")
    return found[0]


def installed_extensions() -> list[str]:
    """Return the names of the extensions that installed packages register."""
    return sorted(importlib.metadata.entry_points(group=ENTRY_POINTS).names)


def _loaded(reference: str) -> list[Actuator]:
    place, _, name = reference.partition(":")
    if not place:
        raise BadReference(
            f'"{reference}" names no module; write module:Actuator or file.py:Actuator'
        )
    if not name and (entry := _entry_point(place)) is not None:
        found, title = entry, place
    else:
        module = _module(place)
        found = _attribute(module, place, name) if name else _only(module, place)
        title = f"{place}:{name or getattr(found, '__name__', '')}"
    items = found if isinstance(found, Sequence) and not isinstance(found, str) else [found]
    return [_instance(item, title) for item in items]


def _entry_point(name: str) -> object | None:
    """Return the value of an entry point, or None if no installed package has it."""
    found = importlib.metadata.entry_points(group=ENTRY_POINTS, name=name)
    if not found:
        return None
    [entry, *others] = sorted(found, key=lambda point: point.value)
    if any(other.value != entry.value for other in others):
        values = ", ".join(sorted({point.value for point in found}))
        raise BadReference(f'several packages have an extension "{name}"; name one of {values}')
    try:
        value: object = entry.load()
    except Exception as error:  # any error that importing the author's module raises
        text = f"{type(error).__name__}: {error}{_where(error)}"
        raise BadReference(f'extension "{name}" cannot be imported: {text}') from error
    return value


def _module(place: str) -> ModuleType:
    path = Path(place)
    is_file = place.endswith(".py") or len(path.parts) > 1
    try:
        return _from_file(path) if is_file else _by_name(place)
    except BadReference:
        raise
    except Exception as error:  # any error that importing the author's module raises
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
            f"{_known_extensions(name)}"
        ) from None


def _known_extensions(name: str) -> str:
    known = [] if "." in name else installed_extensions()
    return f"; the installed extensions are {', '.join(known)}" if known else ""


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadReference(f"there is no file {path}")
    path = path.resolve()
    name = path.stem if path.stem not in sys.modules else f"extension_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadReference(f"{path} is not a Python file; its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    # Registered, and with its neighbours importable, as if Python had been started with it.
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
    for cls in _candidates(module):
        raise BadReference(_incomplete(f"{place}:{cls.__name__}", cls))
    raise BadReference(f"{place} has no actuator: a class that derives from pergola's Actuator")


def _actuators(module: ModuleType) -> Iterator[type[Actuator]]:
    """Yield the complete actuators that the module itself defines."""
    return (cls for cls in _candidates(module) if not _missing(cls))


def _candidates(module: ModuleType) -> Iterator[type[Actuator]]:
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Actuator)
            and value.__module__ == module.__name__
        ):
            yield value


def _instance(found: object, title: str) -> Actuator:
    if isinstance(found, Actuator):
        actuator = found
    elif isinstance(found, type) and issubclass(found, Actuator):
        if found.__abstractmethods__:
            raise BadReference(_incomplete(title, found))
        try:
            actuator = found()
        except TypeError as error:
            raise BadReference(
                f"{title} cannot be instantiated without arguments ({error}); name an instance "
                "instead"
            ) from None
    else:
        raise BadReference(f"{title} is not an actuator; it must derive from pergola's Actuator")
    if _missing(actuator):
        raise BadReference(_incomplete(title, actuator))
    return actuator


def _missing(actuator: Actuator | type[Actuator]) -> list[str]:
    """Return the attributes and methods that the author has not implemented yet."""
    attributes = [name for name in actuator.attributes if not getattr(actuator, name, None)]
    return [*attributes, *_unwritten(actuator)]


def _unwritten(actuator: Actuator | type[Actuator]) -> list[str]:
    return sorted(actuator.__abstractmethods__) if isinstance(actuator, type) else []


def _incomplete(title: str, actuator: Actuator | type[Actuator]) -> str:
    methods = _unwritten(actuator)
    attributes = [name for name in _missing(actuator) if name not in methods]
    parts = []
    if attributes:
        parts.append(f"does not set {', '.join(attributes)}")
    if methods:
        parts.append(f"does not implement {', '.join(methods)}")
    return f"{title} is incomplete: it {' and '.join(parts)}"


def _where(error: BaseException) -> str:
    """Return the line where an exception was raised."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" ({error.filename}:{error.lineno})" if error.filename else ""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})"
