"""Descriptions of types and fields, from their docstrings."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

_NONE: Mapping[str, str] = MappingProxyType({})


def type_description(cls: type) -> str:
    """Return the first paragraph of a class's own docstring, on one line; empty without one."""
    return _paragraph(cls.__dict__.get("__doc__") or "")


def field_descriptions(cls: type) -> Mapping[str, str]:
    """Return the docstrings of fields of a class and its bases, by field name, each on one line.

    Empty if the source is not available.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _documented_classes(base.__module__).get(base.__qualname__, _NONE)
    return found


@cache
def _documented_classes(module: str) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {node.name: dict(_fields(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        text = _text(below)
        if text and isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            yield field.target.id, _paragraph(text)


def _text(node: ast.stmt) -> str:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return ""
    return node.value.value if isinstance(node.value.value, str) else ""


def _paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n", 1)[0].split())
