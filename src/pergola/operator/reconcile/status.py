"""The status of a Garden: its operator, the last operation, and its errors (spec 20 §7, §9).

Only the fields of the main reconciler are written, as merge patches, so that the conditions of the
care reconciler are preserved. Writes that would change nothing are not sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject, Key, generation_of, map_at
from pergola.api.operator_v1alpha1 import GARDEN, Garden, garden_from
from pergola.extension_api.errors import codes_of
from pergola.flow import FlowFailed, Report
from pergola.kube.client import Client
from pergola.kube.patches import apply_merge_patch, same
from pergola.runtime.clock import Clock
from pergola.runtime.failures import sentence_of

OperationType = Literal["Reconcile", "Delete"]

RETRIED: Final = "Operation will be retried."
INITIALIZED: Final[dict[OperationType, str]] = {
    "Reconcile": "Reconciliation of Garden cluster initialized.",
    "Delete": "Deletion of Garden cluster in progress.",
}
RECONCILED: Final = "Garden cluster has been successfully reconciled."
_ALL: Final = 100


@dataclass(frozen=True, slots=True)
class Operator:
    """The identity of a process, as shown in a Garden's status.

    Attributes:
        id: Of the process.
        name: Of its pod.
        version: Of Gardener, to which the operator belongs.
    """

    id: str
    name: str
    version: str

    def to_json(self) -> JsonObject:
        """Return `status.gardener`."""
        return {"id": self.id, "name": self.name, "version": self.version}


class Status:
    """Writes the status of one Garden during one reconciliation."""

    def __init__(
        self, client: Client, garden: JsonObject, operator: Operator, clock: Clock
    ) -> None:
        self._typed: Garden | None = None
        self.garden = garden
        self._client = client
        self._operator = operator
        self._clock = clock
        self._kind: OperationType = "Reconcile"

    @property
    def garden(self) -> JsonObject:
        """The Garden as last written."""
        return self._garden

    @garden.setter
    def garden(self, garden: JsonObject) -> None:
        self._garden, self._typed = garden, None

    @property
    def typed(self) -> Garden:
        """The same Garden, with all its defaults."""
        if self._typed is None:
            self._typed = garden_from(self._garden)
        return self._typed

    async def begin(self, kind: OperationType, changes: JsonObject) -> None:
        """Record that an operation starts.

        Args:
            changes: Additional fields of the status, as a merge patch.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        self._kind = kind
        operation = self._operation("Processing", 0, INITIALIZED[kind])
        await self._write(
            {
                **changes,
                "gardener": self._operator.to_json(),
                "observedGeneration": generation_of(self.garden),
                "lastOperation": operation,
            }
        )

    async def report(self, report: Report) -> None:
        """Record the progress of the operation; raises as `begin` does."""
        operation = self._operation("Processing", report.percent, report.description)
        await self._write({"lastOperation": operation})

    async def fail(self, error: Exception) -> None:
        """Record why the operation failed; raises as `begin` does."""
        text = f"{sentence(error)} {RETRIED}"
        operation = self._operation("Error", self._progress, text)
        await self._write(
            {
                "gardener": self._operator.to_json(),
                "lastOperation": operation,
                "lastErrors": last_errors(error, operation["lastUpdateTime"]),
            }
        )

    async def succeed(self, changes: JsonObject) -> None:
        """Record that the operation succeeded; raises as `begin` does.

        Args:
            changes: Additional fields of the status, as a merge patch.
        """
        operation = self._operation("Succeeded", _ALL, RECONCILED)
        await self._write({**changes, "lastOperation": operation, "lastErrors": None})

    @property
    def _progress(self) -> int:
        return int(map_at(self.garden, "status", "lastOperation").get("progress") or 0)

    def _operation(self, state: str, progress: int, description: str) -> JsonObject:
        now = timestamp(self._clock.now())
        return {
            "type": self._kind,
            "state": state,
            "progress": progress,
            "description": description,
            "lastUpdateTime": now,
        }

    async def _write(self, status: JsonObject) -> None:
        before = map_at(self.garden, "status")
        if same(apply_merge_patch(before, status), before):
            return
        key = Key.of(self.garden)
        self.garden = await self._client.patch(
            GARDEN, key, {"status": status}, subresource="status"
        )


def sentence(error: Exception) -> str:
    """Return the text of an error, ending with a full stop."""
    text = _text(error).strip() or type(error).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."


def last_errors(error: Exception, now: str) -> list[JsonObject]:
    """Return `status.lastErrors`, with one entry for each failed task.

    Args:
        now: The time of the entries, RFC 3339.
    """
    if not isinstance(error, FlowFailed):
        return [_last_error(_text(error), codes_of(error), now)]
    return [
        {"taskID": failure.task, **_last_error(str(failure), failure.codes, now)}
        for failure in error.failures
    ]


def _last_error(description: str, codes: Sequence[str], now: str) -> JsonObject:
    error: JsonObject = {"description": description, "lastUpdateTime": now}
    return {**error, "codes": [str(code) for code in codes]} if codes else error


def _text(error: Exception) -> str:
    """Return the text of an error; the text of a built-in group would hide its errors."""
    return sentence_of(error) if isinstance(error, ExceptionGroup) else str(error)
