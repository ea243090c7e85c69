"""Extensions of a garden that run in the test's event loop, and a run of the garden's flow."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from pergola.api.objects import JsonObject, Key, name_of
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extension_api.kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    DNS_RECORD,
    EXTENSION,
    ExtensionKind,
)
from pergola.extensions.actuator import Context, Status
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.manifests import manifest
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.extension_site import RecordingActuator
from tests.support.objects import secret

KINDS: Final = (DNS_RECORD, BACKUP_ENTRY, BACKUP_BUCKET, EXTENSION)
"""The kinds that a garden uses."""


class Later(SystemClock):
    """A clock that is a minute ahead, so that a recent success appears to be old."""

    def now(self) -> datetime:
        """Return the time in a minute."""
        return super().now() + timedelta(minutes=1)


CLOCK: Final = SystemClock()
LATER: Final = Later()


def garden_actuator(of_kind: ExtensionKind, of_type: str) -> RecordingActuator:
    """Return a recording actuator for one kind and type."""

    class Own(RecordingActuator):
        kind = of_kind.kind
        type = of_type
        name = f"garden-{of_type}"

    return Own()


def backup_actuators() -> tuple[RecordingActuator, RecordingActuator]:
    """Return the actuators for BackupBuckets and BackupEntries of type `local`."""
    buckets = garden_actuator(BACKUP_BUCKET, "local")
    entries = garden_actuator(BACKUP_ENTRY, "local")
    entries.acts["reconcile"] = keep_etcd_secret
    return buckets, entries


def garden_unit(client: Client, actuator: RecordingActuator) -> Unit:
    """Return the unit that serves the resources of class `garden`."""
    settings = Settings(classes=("garden",))
    return extension_controller(client, actuator, settings, metrics=Metrics())


def hasty(kind: ExtensionKind, timeout: float = 180.0) -> ExtensionKind:
    """Return a kind whose errors count soon."""
    return replace(kind, interval=0.1, severe=0.6, timeout=timeout)


async def fail(_context: Context, _obj: JsonObject) -> Status | None:
    """Fail with a code, as an actuator may do."""
    raise ExtensionError("the account is closed", Code.UNAUTHORIZED)


async def keep_etcd_secret(context: Context, obj: JsonObject) -> Status | None:
    """Keep the Secret for the etcd, as extensions for BackupEntries do."""
    namespace, _, _ = obj["metadata"]["name"].partition("--")
    with suppress(AlreadyExists):
        await context.client.create(secret(namespace, "etcd-backup", key="value"))
    return None


def resource(
    kind: ExtensionKind, key: Key, spec: JsonObject, labels: Mapping[str, str] | None = None
) -> JsonObject:
    """Return an extension resource."""
    return manifest(
        kind.gvk.api_version,
        kind.kind,
        key.name,
        namespace=key.namespace,
        labels=labels,
        spec=spec,
    )


async def names(client: Client, kind: ExtensionKind) -> set[str]:
    """Return the names of all resources of a kind."""
    return {name_of(obj) for obj in await client.list(kind.gvk)}


async def remove_resources(client: Client) -> None:
    """Delete all extension resources, whether an extension serves them or not."""
    for kind in KINDS:
        for obj in await client.list(kind.gvk):
            key = Key.of(obj)
            with suppress(NotFound):
                await client.patch(kind.gvk, key, {"metadata": {"finalizers": None}})
                await client.delete(kind.gvk, key)


def operator_extension(name: str, *served: str, **fields: Any) -> JsonObject:
    """Return an Extension of the operator.

    Args:
        served: Kinds and types, such as `DNSRecord/local`.
        fields: Of each of these resources.
    """
    resources = [
        {"kind": kind, "type": of_type, **fields}
        for kind, _, of_type in (each.partition("/") for each in served)
    ]
    return {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": {"name": name},
        "spec": {"resources": resources},
    }
