"""The page of the library lists the names in the `__all__` of each public room."""

import ast
import importlib
import inspect
import os
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tools.examples import example_of
from tools.surface import ROOMS

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "library.md"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def reference() -> str:
    """Return the generated part of the page: one table for each package."""
    return "\n".join(_section(room) for room in ROOMS)


def _section(room: str) -> str:
    module = importlib.import_module(f"pergola.{room}")
    rows = [
        f"| `{_shape(module, name)}` | {_summary(module, name)} | {_example(module, name)} |"
        for name in module.__all__
    ]
    return "\n".join(
        [
            f"## pergola.{room}",
            "",
            _paragraph(module.__doc__ or ""),
            "",
            "| name | | example |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _shape(module: ModuleType, name: str) -> str:
    """Return a name with its parameters; types and errors are on the page of the room."""
    value = getattr(module, name)
    is_declared = inspect.isfunction(value) or inspect.isclass(value)
    if not is_declared or getattr(value, "__name__", "") != name or _is_not_called(value):
        return name
    return f"{name}({', '.join(_parameters(inspect.signature(value)))})"


def _example(module: ModuleType, name: str) -> str:
    found = example_of(module.__name__, name)
    return f"[{found.title}](../../{found.path})" if found else ""


def _is_not_called(value: object) -> bool:
    """Return whether a class is raised, implemented, or has members instead of instances."""
    return inspect.isclass(value) and (
        issubclass(value, BaseException | Enum)
        or getattr(value, "_is_protocol", False)
        or inspect.isabstract(value)
    )


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    marks: Mapping[object, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    is_marked = False
    for each in signature.parameters.values():
        is_marked |= each.kind is inspect.Parameter.VAR_POSITIONAL
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_marked:
            is_marked = True
            yield "*"
        optional = "" if each.default is inspect.Parameter.empty else "=…"
        yield f"{marks.get(each.kind, '')}{each.name}{optional}"


def _summary(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    text = _documented_constants(module).get(name, "")
    if getattr(value, "__name__", "") == name:
        text = value.__doc__ or ""
    elif not text and type(value).__module__.startswith("pergola."):
        text = f"A constant: `{type(value).__name__}`."
    assert text, f"{module.__name__}.{name} has no docstring"
    return _paragraph(text).replace("|", "\\|")


@cache
def _documented_constants(module: ModuleType) -> dict[str, str]:
    """Return the docstrings of the constants and aliases that a package exports."""
    here = ast.parse(inspect.getsource(module))
    found = dict(_constants(here))
    for statement in ast.walk(here):  # also in a block for type checkers
        if isinstance(statement, ast.ImportFrom) and statement.module:
            origin = importlib.import_module(statement.module)
            documented = dict(_constants(ast.parse(inspect.getsource(origin))))
            for alias in statement.names:
                if alias.name in documented:
                    found[alias.asname or alias.name] = documented[alias.name]
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each constant that is followed by one."""
    for statement, after in pairwise(tree.body):
        if not (isinstance(statement, ast.AnnAssign | ast.Assign) and isinstance(after, ast.Expr)):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if isinstance(after.value, ast.Constant) and isinstance(targets[0], ast.Name):
            yield targets[0].id, str(after.value.value)


def _paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def test_the_reference_lists_the_public_names_of_every_room() -> None:
    page = PAGE.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(page.partition(BEGIN)[0] + BEGIN + reference())
        return
    assert page.partition(BEGIN)[2] == reference()


@pytest.mark.parametrize("room", ROOMS)
def test_a_table_of_contents_is_sorted_and_complete(room: str) -> None:
    module = importlib.import_module(f"pergola.{room}")

    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_each_function_and_each_class_that_users_create_has_an_example(room: str) -> None:
    # Constants, errors, enumerations and protocols are explained by what takes or raises them.
    module = importlib.import_module(f"pergola.{room}")
    without = [
        name
        for name in module.__all__
        if inspect.isfunction(value := getattr(module, name))
        or (inspect.isclass(value) and not _is_not_called(value))
        if example_of(module.__name__, name) is None
    ]
    assert without == []
