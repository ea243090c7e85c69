"""`pergola garden compare`: a landscape of the original beside what ours renders."""

import asyncio
import sys
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pergola.cli.garden.landscapes import Sides, from_cluster, from_file, is_file

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, JsonValue
    from pergola.kube.equality import Difference
    from pergola.operator.compare import Comparison, Differing, Placed

DIFFERENT: Final = 2
_LINES: Final = 20


def compare(
    *,
    source: Annotated[str, Parameter(name="--with", allow_leading_hyphen=True)],
    garden: str = "",
    only: Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)] = None,
    config: Path | None = None,
    output: Annotated[Literal["text", "json"], Parameter(alias="-o")] = "text",
    kubeconfig: Path | None = None,
) -> None:
    """Compare a landscape of the original operator with what ours renders for the same Garden.

    Prints objects that only one side has, and the fields in which others differ. Generated values,
    hashes in names, tags of images, status and defaults of servers are not compared; values of
    Secrets are neither compared nor printed. Only reads. Exits with 2 if there are differences.

    Parameters
    ----------
    source
        A dump of the runtime cluster: the output of `kubectl get -o yaml` or `-o json` with
        ManagedResources and their Secrets, or one JSON object a line with `where` each is kept;
        - for the standard input. Anything else is the context of a live landscape.
    garden
        A manifest of the Garden, or the name of one of the landscape; by default its only one.
    only
        A ManagedResource or component to print; repeat for several.
    config
        Configuration file of the operator, whose feature gates change what is rendered. Without
        it, all have their defaults.
    output
        `text` for people, `json` for programs.
    kubeconfig
        Kubeconfig with the context of a live landscape; found as kubectl finds it by default.
    """
    from pergola.operator.compare import compare as compared

    if is_file(source):
        sides = from_file(source, garden, config)
    else:
        sides = asyncio.run(from_cluster(source, kubeconfig, garden, config))
    found = compared(sides.there, sides.here, has_texts=sides.recorded.has_texts)
    if only:
        found = found.of_groups(only)
    if output == "json":
        _print_json(found, sides)
    else:
        for note in sides.notes:
            print(f"warning: {note}", file=sys.stderr)
        print("\n".join(_lines(found, sides)))
    if not found.is_equal:
        sys.exit(DIFFERENT)


# For people


def _lines(found: "Comparison", sides: Sides) -> Iterator[str]:
    for group in found.groups:
        yield group
        yield from _alone("only there", found.only_there, group)
        yield from _alone("only here", found.only_here, group)
        for each in found.differing:
            if each.here.group == group:
                yield from _fields(each)
        yield ""
    yield (
        f"{len(found.only_there)} objects only there, {len(found.only_here)} only here, "
        f"{len(found.differing)} differ, {found.equal} are equal"
    )
    if sides.recorded.ignored:
        counts = (f"{count} {reason}" for reason, count in sides.recorded.ignored.items())
        yield f"not compared: {', '.join(counts)}"


def _alone(where: str, objects: "Iterable[Placed]", group: str) -> Iterator[str]:
    for placed in objects:
        if placed.group == group:
            yield f"  {where}: {placed.identity}"


def _fields(each: "Differing") -> Iterator[str]:
    yield f"  {each.here.identity}"
    for field in each.fields:
        yield f"    {field.path}"
        yield from (f"      {line}" for line in _values(field))


def _values(field: "Difference") -> Iterator[str]:
    """Yield both values, or of long texts the lines that differ."""
    one, other = field.one, field.other
    if isinstance(one, str) and isinstance(other, str) and ("\n" in one or "\n" in other):
        lines = list(unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0))[2:]
        yield from islice((line for line in lines if not line.startswith("@@")), _LINES)
        if len(lines) > _LINES:
            yield "…"
        return
    yield f"there: {_shown(one)}"
    yield f"here:  {_shown(other)}"


def _shown(value: "JsonValue") -> str:
    import orjson

    return "(absent)" if value is None else orjson.dumps(value).decode()


# For programs


def _print_json(found: "Comparison", sides: Sides) -> None:
    import orjson

    answer: JsonObject = {
        "equal": found.equal,
        "onlyThere": [_identity(placed) for placed in found.only_there],
        "onlyHere": [_identity(placed) for placed in found.only_here],
        "differing": [
            {
                **_identity(each.here),
                "fields": [
                    {"path": field.path, "there": field.one, "here": field.other}
                    for field in each.fields
                ],
            }
            for each in found.differing
        ],
        "notCompared": sides.recorded.ignored,
        "warnings": sides.notes,
    }
    print(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())


def _identity(placed: "Placed") -> "JsonObject":
    identity = placed.identity
    return {
        "group": placed.group,
        "cluster": identity.cluster.value,
        "apiGroup": identity.kind.group,
        "kind": identity.kind.kind,
        "namespace": identity.key.namespace,
        "name": identity.key.name,
    }
