"""`pergola garden compare`: an installation of the original, compared with Pergola's objects."""

import asyncio
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.api.texts import counted
from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.landscapes import CompareError, Sides, from_cluster, from_file, is_file
from pergola.cli.garden.values import text_difference
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.equality import Difference
    from pergola.operator.compare import Comparison, Differing, Placed

DIFFERENT: Final = 2
_THERE: Final = "only there"
_HERE: Final = "only here"


def compare(
    *,
    source: Annotated[str, Parameter(name="--with", allow_leading_hyphen=True)],
    garden: str = "",
    only: Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)] = None,
    unexpected_only: Annotated[bool, Parameter(negative="")] = False,
    config: Path | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Compare an installation of the original operator with what Pergola renders for its Garden.

    Prints objects that exist only on one side, and each field that differs. Ignores generated
    values, hashes in names, image tags, the status and defaults of API servers; neither compares
    nor prints values of Secrets. Prints the reason for each deliberate difference. Only reads.
    Exits with 2 if there are differences to print.

    Parameters
    ----------
    source
        A dump of the runtime cluster: the output of `kubectl get -o yaml` or `-o json` with
        ManagedResources and their Secrets, or one JSON object per line with the field `where`.
        Use `-` for standard input. Anything else is the context of a live installation.
    garden
        A manifest of the Garden, or the name of a Garden; by default the only one.
    only
        A ManagedResource or component to print; repeat for several.
    unexpected_only
        Omit deliberate differences, which the documentation lists.
    config
        Configuration file of the operator, whose feature gates change the rendered objects. By
        default that of the operator in a live installation; for a dump, the defaults.
    """
    from pergola.operator.compare import compare as compared
    from pergola.operator.compare import expected, unexpected

    if is_file(source):
        sides = from_file(source, garden, config)
    elif cluster.context:
        raise CompareError("--with names the context of a live installation; omit --context")
    else:
        sides = asyncio.run(from_cluster(replace(cluster, context=source), garden, config))
    found = compared(sides.there, sides.here, has_texts=sides.recorded.has_texts)
    if only:
        found = found.of_groups(only)
    if unexpected_only:
        found = unexpected(found, expected())
    show(output, data=_data(found, sides), text=lambda: _print_text(found, sides))
    if not found.is_equal:
        sys.exit(DIFFERENT)


# For people


def _print_text(found: "Comparison", sides: Sides) -> None:
    for note in sides.notes:
        say(f"warning: {note}", file=sys.stderr)
    say("\n".join(_lines(found, sides)))


def _lines(found: "Comparison", sides: Sides) -> Iterator[str]:
    for group in found.groups:
        yield group
        yield from _alone(_THERE, found.only_there, group)
        yield from _alone(_HERE, found.only_here, group)
        for each in found.differing:
            if each.here.group == group:
                yield from _fields(each)
        yield ""
    yield (
        f"{counted(len(found.only_there), 'object')} only there, {len(found.only_here)} only here, "
        f"{len(found.differing)} differ, {found.equal} are equal"
    )
    if sides.recorded.ignored:
        counts = (f"{count} {reason}" for reason, count in sides.recorded.ignored.items())
        yield f"not compared: {', '.join(counts)}"


def _alone(where: str, objects: "Iterable[Placed]", group: str) -> Iterator[str]:
    from pergola.operator.compare import expected, reason_alone

    for placed in objects:
        if placed.group == group:
            yield f"  {where}: {placed.identity}"
            why = reason_alone(placed, is_there=where == _THERE, rows=expected())
            yield from [f"    expected: {why}"] if why else []


def _fields(each: "Differing") -> Iterator[str]:
    from pergola.operator.compare import expected, reason

    yield f"  {each.here.identity}"
    for field in each.fields:
        yield f"    {field.path}"
        yield from (f"      {line}" for line in _values(field))
        why = reason(each.here, field.path, field.one, field.other, expected())
        yield from [f"      expected: {why}"] if why else []


def _values(field: "Difference") -> Iterator[str]:
    """Yield both values or, for long texts, the lines that differ."""
    changed = text_difference(field.one, field.other)
    if changed is not None:
        yield from changed
        return
    from pergola.operator.compare import shown

    yield f"there: {shown(field.one)}"
    yield f"here:  {shown(field.other)}"


# For programs


def _data(found: "Comparison", sides: Sides) -> "JsonObject":
    return {
        "equal": found.equal,
        "onlyThere": [_only(placed, is_there=True) for placed in found.only_there],
        "onlyHere": [_only(placed, is_there=False) for placed in found.only_here],
        "differing": [
            {
                **_identity(each.here),
                "fields": [_field(each.here, field) for field in each.fields],
            }
            for each in found.differing
        ],
        "notCompared": sides.recorded.ignored,
        "warnings": [*sides.notes],
    }


def _only(placed: "Placed", *, is_there: bool) -> "JsonObject":
    from pergola.operator.compare import expected, reason_alone

    why = reason_alone(placed, is_there=is_there, rows=expected())
    return _identity(placed) | ({"expected": why} if why else {})


def _field(placed: "Placed", field: "Difference") -> "JsonObject":
    from pergola.operator.compare import expected, reason

    why = reason(placed, field.path, field.one, field.other, expected())
    values: JsonObject = {"path": field.path, "there": field.one, "here": field.other}
    return values | ({"expected": why} if why else {})


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
