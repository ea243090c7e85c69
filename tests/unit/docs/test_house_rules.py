"""The source keeps the house rules of AGENTS.md that a tool can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from vulture import Vulture

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src/pergola"
OUTSIDE = ("bench", "conformance", "tests", "tools")
"""What exists in the repository only, not in the wheel."""
TASK_GROUP = Path("runtime/task_group.py")


def unguarded(source: str) -> Iterator[int]:
    """Yield the lines that start concurrent work without the house's task groups."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute | ast.Call):
            continue
        if isinstance(node, ast.Attribute):
            if ast.unparse(node) == "asyncio.TaskGroup":
                yield node.lineno
        elif ast.unparse(node.func) == "asyncio.gather":
            flags = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if flags.get("return_exceptions") != "True":
                yield node.lineno


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("await asyncio.gather(a(), b())", [1]),
        ("await asyncio.gather(*c, return_exceptions=False)", [1]),
        ("x = asyncio.TaskGroup", [1]),
        ("await asyncio.gather(*c, return_exceptions=True)", []),
        ("async with TaskGroup() as group: pass", []),
    ],
)
def test_the_check_finds_concurrent_work_whose_failure_leaves_the_rest_running(
    source: str, lines: list[int]
) -> None:
    assert list(unguarded(f"async def f():\n  {source}")) == [line + 1 for line in lines]


def test_concurrent_work_ends_with_its_first_failure() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: use pergola.runtime.task_group"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE) != TASK_GROUP and "asyncio." in (source := path.read_text())
        for line in unguarded(source)
    ]
    assert found == []


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_the_package_and_its_examples_import_nothing_that_only_the_repository_has() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
        for module in imports_of(path)
        if module.split(".")[0] in OUTSIDE
    ]
    assert found == []


DELETES_BY_NAME: Final = {
    "admission/self_signed.py": "a webhook configuration with the name of this process",
    "providers/networking/seed_objects.py": "the record of these objects, which is its own",
}
"""Modules with a deletion that does not name an incarnation, and the deleted object."""
NOT_CLIENTS: Final = {"bundle", "rollout", "self", "self._caller", "self._deletion", "self._pruner"}
"""Receivers of calls of another `delete`, which in turn calls that of a client."""


def deletions_by_name(source: str) -> Iterator[int]:
    """Yield the lines that delete an object by its kind and key, without a uid."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        deletes = node.func.attr == "delete" and len(node.args) > 1
        is_named = any(keyword.arg == "uid" for keyword in node.keywords)
        if deletes and not is_named and ast.unparse(node.func.value) not in NOT_CLIENTS:
            yield node.lineno


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("await client.delete(KIND, key)", [1]),
        ("await self._virtual.delete(KIND, key, propagation=p)", [1]),
        ("await runtime.live.delete(KIND, key, uid=uid)", []),
        ("await self._caller.delete(KIND, live)", []),
        ("await session.delete(url)", []),
    ],
)
def test_the_check_finds_deletions_by_name_through_any_client(
    source: str, lines: list[int]
) -> None:
    assert list(deletions_by_name(f"async def f():\n  {source}")) == [n + 1 for n in lines]


def test_a_deletion_names_the_incarnation_that_was_read() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "testing"
        and ".delete(" in (source := path.read_text())
        and any(True for _ in deletions_by_name(source))
    }
    assert found == DELETES_BY_NAME.keys()


def signals(source: str) -> Iterator[int]:
    """Yield the lines that send signals through asyncio's processes, which lose return codes."""
    if "asyncio.subprocess" not in source and "create_subprocess" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"kill", "terminate", "send_signal"}
            and ast.unparse(node.value) not in {"os", "self"}
        ):
            yield node.lineno


def test_the_check_finds_signals_through_processes_of_asyncio() -> None:
    process = "process = await asyncio.create_subprocess_exec()\n"

    assert list(signals(f"{process}process.kill()")) == [2]
    assert not list(signals(f"{process}send(process, signal.SIGKILL)"))


def test_signals_to_child_processes_leave_the_return_code_alone() -> None:
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if (lines := list(signals(path.read_text())))
    }

    assert found == {}, "use pergola.kube.child_process"


UNUSED: Final = {
    # Called by a library.
    "get_buffer": "asyncio",
    "buffer_updated": "asyncio",
    "on_message_begin": "httptools",
    "on_url": "httptools",
    "on_header": "httptools",
    "on_headers_complete": "httptools",
    "on_body": "httptools",
    "on_message_complete": "httptools",
    "on_broken_pipe": "rich",
    "for_kubectl": "the entry point of kubectl_complete-pergola",
    # For authors of extensions and kinds; examples, guides or tests use them.
    "network_mutator": "the SDK",
    "request_access": "the SDK",
    "load_actuator": "the SDK",
    "AZURE": "the SDK",
    "OVERLAY_OFF": "the SDK",
    "SET": "types of kinds",
    "EMBEDDED": "types of kinds",
    "ACTUATORS": "loaded by the name of its module",
    # For tests.
    "EXCEPTIONS": "what `pergola.bundle.lint` allows",
    "FakeClock": "time that a test moves",
    "is_leader": "who leads, while nothing is asked",
}
"""Names without a use in the package, and who uses or needs them."""
_MEMBERS: Final = ("class", "function", "method", "property")


_TARGET: Final = re.compile(r'"[a-z_.]+:([a-z_]+)"')


def imported_by_name(path: Path) -> Iterator[str]:
    """Yield the names that a module gives as `"module:name"`, to import them when needed."""
    yield from _TARGET.findall(path.read_text())


def test_the_package_has_no_unused_code() -> None:
    """Names of the public surface, and of the rooms for tests and sandboxes, are not checked."""
    searched = Vulture(ignore_decorators=["@app.*", "@pytest.*"])
    searched.scavenge([str(PACKAGE)])
    public = set(re.findall(r"\w+", (ROOT / "tools" / "surface.txt").read_text()))
    imported = {name for path in PACKAGE.rglob("*.py") for name in imported_by_name(path)}
    found = {
        item.name: f"{item.filename.relative_to(PACKAGE)}:{item.first_lineno}"
        for item in searched.get_unused_code()
        if item.filename.relative_to(PACKAGE).parts[0] not in ("testing", "sandbox")
        and (item.typ in _MEMBERS or item.name.isupper())
        and item.name not in public | imported
        and not (item.name.startswith("__") or item.name == "pytestmark")
    }
    assert found.keys() - UNUSED.keys() == set(), found
    assert UNUSED.keys() - found.keys() == set(), "remove them from the list"


SMALL: Final = {
    "admission/workers": "a process and its parent, which share messages only",
    "api/known": "a table for each kind of known things",
    "cli": "commands that are imported only when they are run",
    "extensions": "entry points and their parts",
    "garden/components/definitions": "definitions of other projects, as data",
    "operator/webhooks": "two kinds with handlers of the same names",
    "providers/aws/control_plane": "grows with the control plane",
    "providers/aws/flows": "the order of steps, apart from the steps",
    "providers/aws/resources": "ensure, delete and wait for one kind of resource",
    "providers/aws/show": "one output for each format",
    "runtime/process/sharding": "parts that other processes use alone",
    "sandbox/collectors": "a program of its own",
    "shipped": "files of the package",
    "tracing": "the library is imported only where it is used",
}
"""Folders, or their parents, that may be smaller than a file is long, and why."""
LEAST: Final = 450  # lines


def test_a_folder_has_more_lines_than_a_file_may_have() -> None:
    small = {}
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        modules = [*folder.glob("*.py")]
        lines = sum(len(path.read_text().splitlines()) for path in modules)
        name = folder.relative_to(PACKAGE)
        has_folders = any(path.parent.parent == folder for path in folder.rglob("*.py"))
        is_listed = any(name.is_relative_to(each) for each in SMALL)
        if lines < LEAST and not has_folders and not is_listed:
            small[str(name)] = lines

    assert small == {}, "make it one file"


AVOIDED: Final = {
    "brought": "user_provided",
    "condemned": "to_delete",
    "look": "observe",
    "looks": "polls",
    "surroundings": "dependencies",
    "wanted": "desired",
}
"""Words of the list in CONTRIBUTING that names do not use, and what to write."""
PUBLIC: Final = {"WANTED"}
"""Names that users know, by these words."""


def names(source: str) -> Iterator[tuple[str, int]]:
    """Yield the names that a module defines, with their lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno


def words(name: str) -> set[str]:
    """Return the words of a name, such as `to` and `delete` of `to_delete` and `ToDelete`."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_the_check_finds_words_in_names() -> None:
    found = [name for name, _ in names("class WantedSet:\n  def f(self, is_wanted): self.x = 1")]

    assert found == ["WantedSet", "f", "self", "is_wanted", "x"]
    assert words("WantedSet") & words("is_wanted") == {"wanted"}


def test_names_use_one_word_for_each_concept() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}": f"{name}: write {AVOIDED[word]}"
        for path in PACKAGE.rglob("*.py")
        for name, line in names(path.read_text())
        for word in words(name) & AVOIDED.keys()
        if name not in PUBLIC
    }

    assert found == {}
