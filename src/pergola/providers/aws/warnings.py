"""Warnings that do not block reconciliation: Events about extension resources."""

from collections.abc import Iterable
from datetime import UTC
from hashlib import sha256
from typing import Final

from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, KubeError
from pergola.runtime.clock import Clock
from pergola.runtime.logging import get_logger

log = get_logger("extension")
_NOTE_BYTES: Final = 1024
_CLUSTER_SCOPED: Final = "default"
"""The namespace of Events about resources without one."""


async def warn(client: Client, obj: JsonObject, warnings: Iterable[str], clock: Clock) -> None:
    """Create a Warning Event for each distinct sentence. Failures are logged, never raised."""
    for sentence in dict.fromkeys(warnings):
        try:
            await client.create(event(obj, sentence, clock))
        except AlreadyExists:
            continue
        except KubeError as error:
            log.info("event not written", object=str(Key.of(obj)), error=str(error))


def event(obj: JsonObject, sentence: str, clock: Clock) -> JsonObject:
    """Return the Event about an object; the same sentence yields the same name."""
    key, gvk = Key.of(obj), GroupVersionKind.of(obj)
    reporter = f"{gvk.kind.lower()}-aws"
    digest = sha256(f"{uid_of(obj)} {sentence}".encode()).hexdigest()[:16]
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            "name": f"{key.name[:200]}.{digest}",
            "namespace": key.namespace or _CLUSTER_SCOPED,
        },
        "eventTime": clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter,
        "reportingInstance": reporter,
        "action": "Reconcile",
        "type": "Warning",
        "reason": f"{gvk.kind}Warning",
        "note": sentence.encode()[:_NOTE_BYTES].decode(errors="ignore"),
        "regarding": {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "name": key.name,
            "namespace": key.namespace,
            "uid": uid_of(obj),
        },
    }
