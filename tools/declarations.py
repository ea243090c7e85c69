"""Declarations of public names, read from the source: nothing is imported."""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).parents[1] / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """The statement that defines a name, and its module."""

    module: str
    statement: ast.stmt


class Member(NamedTuple):
    """A field or method of a class."""

    text: str
    is_function: bool


def public_names(module: str) -> list[str]:
    """Return the names in `__all__`."""
    for statement in tree(module).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    raise SystemExit(f"{module} has no __all__")


def find(module: str, name: str) -> Definition | None:
    """Return the definition of a name that a module defines or imports."""
    if not path_of(module).exists():
        return None
    for statement in tree(module).body:
        if name in names_of(statement):
            return Definition(module, statement)
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (source := node.module or "").startswith("pergola"):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return find(source, alias.name)
    return None


def names_of(statement: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign():
            return [ast.unparse(target) for target in statement.targets]
        case ast.AnnAssign():
            return [ast.unparse(statement.target)]
    return []


@cache
def tree(module: str) -> ast.Module:
    """Return the parsed source of a module."""
    return ast.parse(path_of(module).read_bytes())


def path_of(module: str) -> Path:
    """Return the file of a module; it need not exist."""
    path = SOURCE.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    # Git leaves the bytecode of a package that became a module, and so its folder.
    return file if file.exists() else path / "__init__.py"


def declaration(definition: Definition, name: str) -> Iterator[str]:
    """Yield what users of a name rely on: parameters, fields, methods, members of a type."""
    match definition.statement:
        case ast.ClassDef() as statement:
            yield header(statement)
            members = dict(chain.from_iterable(map(members_of, reversed(lineage(definition)))))
            ordered = sorted(members.values(), key=_place)
            yield from (f"    {member.text}" for member in ordered)
        case ast.FunctionDef() | ast.AsyncFunctionDef() as statement:
            yield signature(statement)
        case ast.AnnAssign() as statement if "Final" in ast.unparse(statement.annotation):
            yield f"{name}: {ast.unparse(statement.annotation)}"
        case statement:
            yield ast.unparse(statement)


def header(statement: ast.ClassDef) -> str:
    """Return the first line of a class, with its decorators."""
    decorators = "".join(f"@{ast.unparse(each)} " for each in statement.decorator_list)
    bases = ", ".join(map(ast.unparse, [*statement.bases, *statement.keywords]))
    return f"{decorators}class {statement.name}({bases})"


def lineage(definition: Definition) -> list[ast.ClassDef]:
    """Return a class and its bases in this project, which give it members."""
    statement = definition.statement
    if not isinstance(statement, ast.ClassDef):
        return []
    found = [statement]
    for base in statement.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        inherited = find(definition.module, name)
        if inherited is not None and inherited.statement is not statement:
            found += lineage(inherited)
    return found


def _place(member: Member) -> str:
    """Return what sorts methods by name, after the fields, whose order counts."""
    return member.text if member.is_function else ""


def members_of(statement: ast.ClassDef) -> Iterator[tuple[str, Member]]:
    """Yield the public fields and methods that a class itself declares."""
    for member in statement.body:
        for name in names_of(member):
            if isinstance(member, Function):
                if not name.startswith("_") or name.endswith("__"):
                    yield name, Member(signature(member), is_function=True)
            elif not name.startswith("_"):
                yield name, Member(ast.unparse(member), is_function=False)


def signature(function: Function) -> str:
    """Return the line that declares a function."""
    decorators = "".join(f"@{ast.unparse(each)} " for each in function.decorator_list)
    word = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{decorators}{word} {function.name}({ast.unparse(function.args)}){result}"
