"""The output of `pergola garden rotate`: the announcement, and the state of the rotations."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pergola.cli.text import in_days

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pergola.api.objects import JsonObject, JsonValue
    from pergola.kube.client import Client
    from pergola.operator.rotation.ages import Age
    from pergola.operator.rotation.requested import Request


def announcement(garden: str, requested: "Request", skipped: tuple[str, ...]) -> str:
    """Return what a request will do."""
    lines = [f"{requested.operation} for Garden {garden}:"]
    lines += [f"  {effect}" for effect in requested.effects]
    if skipped:
        lines.append(f"  skipped, and without access afterwards: {', '.join(skipped)}")
    return "\n".join(lines)


def announced_data(
    garden: str, requested: "Request", skipped: tuple[str, ...]
) -> "dict[str, JsonValue]":
    """Return what a request will do, for programs."""
    return {
        "garden": garden,
        "operation": requested.operation,
        "effects": list(requested.effects),
        "skippedSeeds": list(skipped),
    }


async def observe_ages(client: "Client") -> "list[Age]":
    """Return the age of each credential.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    from pergola.api.kinds import SECRET
    from pergola.api.objects import labels_of
    from pergola.garden.landscape import NAMESPACE
    from pergola.operator.rotation.ages import MANAGED, ages

    secrets = await client.list(SECRET, NAMESPACE, labels=MANAGED, metadata_only=True)
    return ages(map(labels_of, secrets), datetime.now(UTC))


def table(garden: "JsonObject", ages: "list[Age]") -> "RenderableType":
    """Return the phase of each rotation, and the age of each credential."""
    from rich.console import Group
    from rich.table import Table

    rotations = Table("rotation", "phase", "since", box=None, pad_edge=False)
    for row in _rotations(garden):
        rotations.add_row(*row)
    credentials = Table("credential", "age", box=None, pad_edge=False)
    for name, age in ages:
        credentials.add_row(name, in_days(age))
    return Group(rotations, "", credentials)


def data(garden: "JsonObject", ages: "list[Age]") -> "dict[str, JsonValue]":
    """Return the phase of each rotation, and the age of each credential, for programs."""
    return {
        "rotations": [
            {"rotation": kind, "phase": phase, "since": since or None}
            for kind, phase, since in _rotations(garden)
        ],
        "credentials": [
            {"credential": name, "ageSeconds": int(age.total_seconds())} for name, age in ages
        ],
    }


def _rotations(garden: "JsonObject") -> Iterator[tuple[str, str, str]]:
    from pergola.api.objects import map_at
    from pergola.operator.rotation.requested import FIELDS

    rotation = map_at(garden, "status", "credentials", "rotation")
    for kind, field in FIELDS.items():
        found = map_at(rotation, field)
        times = [str(value) for name, value in found.items() if name.endswith("Time") and value]
        phase = found.get("phase") or ("" if not found else "rotated")
        yield kind, str(phase or "never rotated"), max(times, default="")
