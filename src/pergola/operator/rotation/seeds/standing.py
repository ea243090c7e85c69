"""The progress of an operation on all Seeds: pure functions of their annotations.

A Seed has one annotation for operations. The patch that sets it also records the rotation that
requested the operation: a Seed with this record but without the operation has finished.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.objects import JsonObject, Key, annotations_of, resource_version_of
from pergola.api.texts import abridged
from pergola.garden.landscape.errors import OperatorError

SKIPPED_SEEDS: Final = "operator.gardener.cloud/skip-seeds-in-rotation"
"""The annotation of a Garden with a comma-separated list of Seeds that rotations skip."""

_RECORD: Final = "rotation.operator.gardener.cloud"
_NAMED: Final = 5


class Request(NamedTuple):
    """An operation that a rotation requests on all Seeds.

    Attributes:
        operation: The value of the annotation `gardener.cloud/operation`.
        rotation: The start of the rotation, RFC 3339.
    """

    operation: str
    rotation: str

    @property
    def record(self) -> str:
        """The annotation that records the rotation that requested the operation."""
        return f"{_RECORD}/{self.operation}"


class Busy(NamedTuple):
    """A Seed with another operation."""

    name: str
    operation: str


class Standing(NamedTuple):
    """The Seeds, or Gardenlets, by their progress on a request.

    Attributes:
        unasked: The objects to request the operation on.
        busy: Those of them that currently have another operation.
        pending: The names of unfinished ones.
        done: The number of finished ones.
        skipped: The names of those that a user excluded.
    """

    unasked: list[JsonObject]
    busy: list[Busy]
    pending: list[str]
    done: int
    skipped: list[str]

    def progress(self, kinds: str) -> str:
        """Return a description of the progress, such as `3 of 5 Seeds done, waiting for a, b`."""
        total = self.done + len(self.pending) + len(self.unasked)
        text = f"{self.done} of {total} {kinds} done"
        if self.pending:
            text += f", waiting for {named(self.pending)}"
        if self.skipped:
            text += f"; skipped: {named(self.skipped)}"
        return text


class SeedsBusy(OperatorError):
    """Seeds have another operation; none was annotated."""

    def __init__(self, kind: str, busy: Iterable[Busy]) -> None:
        """Make the error; the text names each Seed and its operation."""
        super().__init__(
            "; ".join(
                f"error annotating {kind.lower()} {name}: "
                f'already annotated with "{marks.OPERATION}: {operation}"'
                for name, operation in busy
            )
        )


class NotRenewed(OperatorError):
    """Seeds have not finished an operation."""

    def __init__(self, kind: str, secrets: str, standing: Standing) -> None:
        """Make the error; the text names the Seeds, and how to go on without them.

        Args:
            secrets: The renewed credentials, such as `garden access`.
        """
        each = abridged([f'"{name}"' for name in standing.pending], _NAMED)
        super().__init__(
            f'renewing "{secrets}" secrets for {kind.lower()} {each} is not yet completed; '
            f"to go on without it, name it in the Garden's annotation {SKIPPED_SEEDS}"
        )
        self.standing = standing


def standing_of(
    objects: Iterable[JsonObject], request: Request, skipped: Collection[str]
) -> Standing:
    """Return the progress of Seeds on a request.

    Args:
        objects: The objects, or at least their metadata.
        skipped: The names of Seeds that a user excluded.
    """
    found = Standing([], [], [], 0, [])
    done = 0
    for obj in sorted(objects, key=Key.of):
        name, annotations = Key.of(obj).name, annotations_of(obj)
        operation = annotations.get(marks.OPERATION, "")
        if name in skipped:
            found.skipped.append(name)
        elif operation == request.operation:
            found.pending.append(name)
        elif annotations.get(request.record) == request.rotation:
            done += 1
        else:
            found.unasked.append(obj)
            if operation:
                found.busy.append(Busy(name, operation))
    return found._replace(done=done)


def requesting(obj: JsonObject, request: Request) -> JsonObject:
    """Return the merge patch that requests an operation; it fails if the object has changed."""
    annotations = {marks.OPERATION: request.operation, request.record: request.rotation}
    version = resource_version_of(obj)
    return {"metadata": {"annotations": annotations, "resourceVersion": version}}


def skipped_in(garden: JsonObject | None) -> frozenset[str]:
    """Return the names of the Seeds that a Garden's annotation excludes from rotations."""
    text = annotations_of(garden or {}).get(SKIPPED_SEEDS, "")
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def named(names: list[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    return abridged(names, _NAMED)
