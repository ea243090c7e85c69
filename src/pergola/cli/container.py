"""Containers of Gardener, which start with nothing but `--config=FILE`.

Gardener deploys a resource manager, and users an operator, without a command: the image decides
what runs. Pergola has one image, so the file decides.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_OPTION: Final = "--config"
_SHOWN: Final = 60  # characters of an unknown kind
_PROGRAMS: Final = {
    "ResourceManagerConfiguration": "resource-manager",
    "OperatorConfiguration": "operator",
}


class ContainerError(Exception):
    """The file does not say which program runs; the text names it."""


def with_program(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the program that the configuration is for, if they name none.

    Raises:
        ContainerError: The file cannot be read, or is not the configuration of a program.
    """
    option, _, path = arguments[0].partition("=") if arguments else ("", "", "")
    if option != _OPTION:
        return [*arguments]
    path = path or (arguments[1] if len(arguments) > 1 else "")
    if not path:
        raise ContainerError(f"{_OPTION} needs a file")
    return [_program(Path(path)), *arguments]


def _program(path: Path) -> str:
    from pergola.kube.yaml import YamlError, parse

    try:
        value = parse(path.read_bytes())
    except (OSError, YamlError) as error:
        raise ContainerError(f"cannot read {path}: {error}") from error
    kind = value.get("kind") if isinstance(value, dict) else None
    program = _PROGRAMS.get(str(kind))
    if program is None:
        raise ContainerError(
            f"{path} is not the configuration of a program: its kind is {repr(kind)[:_SHOWN]}, not "
            f"{' or '.join(_PROGRAMS)}"
        )
    return program
