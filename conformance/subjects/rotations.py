"""What a reconciliation of a Garden begins with: phases of rotations, and handled operations."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.gardens import GARDEN, VIRTUAL, altered
from conformance.strategies.kubernetes import some
from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue, annotations_of, map_at, without_empty
from pergola.api.operator_v1alpha1 import default_garden, garden_from
from pergola.api.operator_v1alpha1.operations import OPERATIONS
from pergola.kube.patches import apply_merge_patch
from pergola.operator.reconcile.operation import beginning, remaining, requested_by

PARTS: Final = (
    "certificateAuthorities",
    "serviceAccountKey",
    "etcdEncryptionKey",
    "workloadIdentityKey",
)
PHASES: Final = ("Preparing", "Prepared", "Completing", "Completed")
_TIMES: Final = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])
_NOW: Final = datetime(2026, 1, 3, tzinfo=UTC)


class Rotations:
    """Rotations at the start of a reconciliation."""

    name = "rotations"
    ask = "rotations"
    title = "Start of a reconciliation: rotations and operations"
    of: OracleModule = GARDENER
    code = ("pergola.operator.rotation.phases", "pergola.operator.reconcile.operation")

    def table(self) -> Iterator[JsonObject]:
        """Yield each operation in each phase."""
        for version in ("1.33.4", "1.34.2"):
            for operation in sorted(OPERATIONS):
                for phase in ("", *PHASES):
                    rotation = {"phase": phase, "lastInitiationTime": "2026-01-01T00:00:00Z"}
                    rotations = dict.fromkeys(PARTS, rotation) if phase else {}
                    yield _question(version, operation, rotations, "aescbc")

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Gardens with several operations, in the course of rotations."""
        # Admission refuses most requests while rotations are in other phases.
        request = st.sampled_from(sorted(OPERATIONS))
        operations: SearchStrategy[list[str]] = st.one_of(
            st.just([]), st.just(["reconcile"]), st.lists(request, max_size=1), st.lists(request)
        )
        return st.builds(
            _question,
            st.sampled_from(["1.33.4", "1.34.2"]),
            operations.map(";".join),
            some_rotations(),
            st.sampled_from(["aescbc", "aescbc", "aesgcm", "secretbox"]),
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the whole answer."""
        return answer.output

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the status, and the operations that are left."""
        obj = default_garden(question["garden"])
        garden = garden_from(obj)
        changes = beginning(garden, requested_by(obj), _NOW)
        status = apply_merge_patch(obj.get("status", {}), changes)
        left = apply_merge_patch(obj, remaining(obj) or {})
        ours: JsonObject = {
            "advertisedAddresses": status["advertisedAddresses"],
            "credentials": status.get("credentials"),
            "operation": annotations_of(left).get(marks.OPERATION, ""),
        }
        return differences(without_empty(answer.output), without_empty(ours))


def some_rotations() -> SearchStrategy[JsonObject]:
    """Return a strategy for `status.credentials.rotation`, with each part in any phase."""
    times = {
        "lastInitiationTime": _TIMES,
        "lastInitiationFinishedTime": _TIMES,
        "lastCompletionTriggeredTime": _TIMES,
        "lastCompletionTime": _TIMES,
    }
    phases = st.sampled_from(PHASES)
    phased = st.builds(lambda phase, known: {"phase": phase, **known}, phases, some(times))
    automatic = some({"autoCompleteAfterPrepared": st.booleans()})
    of_key = st.builds(lambda rotation, more: {**rotation, **more}, phased, automatic)
    return some(
        {
            **dict.fromkeys(PARTS, phased),
            "etcdEncryptionKey": of_key,
            "observability": some({name: times[name] for name in (*times,)[::3]}),
        }
    )


def _question(version: str, operation: str, rotations: JsonObject, provider: str) -> JsonObject:
    garden = altered(
        GARDEN,
        (("spec", "extensions"), None),
        ((*VIRTUAL, "kubernetes", "version"), version),
        (("metadata", "annotations"), {marks.OPERATION: operation} if operation else None),
    )
    settings = map_at(garden, *VIRTUAL, "kubernetes", "kubeAPIServer", "encryptionConfig")
    settings["provider"] = {"type": provider}
    map_at(garden, *VIRTUAL, "gardener", "gardenerAPIServer", "encryptionConfig")["provider"] = {
        "type": provider
    }
    map_at(garden, "status", "credentials")["rotation"] = rotations
    return {"garden": garden, "now": f"{_NOW:%Y-%m-%dT%H:%M:%SZ}"}
