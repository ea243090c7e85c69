"""Credentials that are not replaced silently, and the permission of a user to replace a lost one.

The first new one uses up the permission.
"""

from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject, Key, annotations_of, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.phases import PREPARING
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger
from pergola.secrets_manager import Irreplaceable, SecretsManager

log = get_logger("garden")

REPLACE_LOST_SECRET: Final = "operator.gardener.cloud/replace-lost-secret"  # noqa: S105 - a name
"""The annotation of a Garden with the name of the lost Secret for which to generate a new one."""

REPLACEABLE: Final = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
    "ca",
    "ca-client",
    "ca-etcd",
    "ca-etcd-peer",
    "ca-front-proxy",
    "ca-gardener",
    "service-account-key",
    "gardener-apiserver-workload-identity-signing-key",
)
"""The credentials that the annotation may name by their Secrets: all that are irreplaceable."""

REMEDY: Final = "restore it from an export with `pergola garden import`"
"""The way back."""

REPLACED: Final = "LostSecretReplaced"
"""The reason of the Event about a new Secret."""
KEPT: Final = "SecretNotLost"
"""The reason of the Event about a Secret that exists."""
RECOVERED: Final = "LostSecretRecovered"
"""The reason of the Event about a Secret whose data was recovered from a copy."""


def given_up(garden: JsonObject) -> str:
    """Return the name of the Secret that a user has given up; empty if there is none."""
    return annotations_of(garden).get(REPLACE_LOST_SECRET, "")


def given_up_in(landscape: Landscape) -> str:
    """Return the name of the Secret that the user of a landscape's Garden has given up."""
    return given_up({"metadata": landscape.garden.metadata})


def published(use: str, phase: str, given_up: str) -> Irreplaceable:
    """Return how to treat a lost credential whose bundle proves that it existed.

    Args:
        use: What only this credential can do; completes "its data is needed to …".
        phase: The phase of its rotation, which generates a new one while it is prepared.
        given_up: The name of the Secret that a user has given up.
    """
    return Irreplaceable(
        use=use,
        is_rotating=phase == PREPARING,
        remedy=REMEDY,
        annotation=REPLACE_LOST_SECRET,
        given_up=given_up,
    )


class LostSecrets:
    """The report of what happens to lost Secrets during one reconciliation.

    Args:
        client: Of the runtime cluster.
        garden: The Garden, whose annotation permits a new Secret.
        events: Receives the Events about the Garden.
    """

    def __init__(self, client: Client, garden: JsonObject, events: Recorder) -> None:
        self._client = client
        self._garden = garden
        self._events = events
        self._recovered: set[str] = set()
        self._permitted = given_up(garden)

    async def settle(self, secrets: SecretsManager) -> None:
        """Report what happened, each thing once; remove the annotation once its Secret exists.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        for name in sorted(secrets.recovered - self._recovered):
            self._recovered.add(name)
            log.warning("lost secret recovered", secret=name)
            note = f"Secret {Key(NAMESPACE, name)} was lost; its data is recovered from a copy"
            self._warn(RECOVERED, note)
        name = self._permitted
        if name and any(name == each.current.object_name for each in secrets.generated.values()):
            self._permitted = ""
            self._report_permitted(name, is_new=name in secrets.replaced)
            await self._remove_permission(name)

    def _report_permitted(self, name: str, *, is_new: bool) -> None:
        secret = Key(NAMESPACE, name)
        if is_new:
            log.warning("lost secret replaced", secret=str(secret))
            note = f"Secret {secret} was lost, and has new data: the old data cannot be restored"
            self._warn(REPLACED, note)
        else:
            note = f"Secret {secret} exists, so the annotation {REPLACE_LOST_SECRET} is removed"
            self._warn(KEPT, note)

    def _warn(self, reason: str, note: str) -> None:
        self._events.warning(Regarding.of(self._garden), reason, note)

    async def _remove_permission(self, name: str) -> None:
        while True:
            live = await self._client.find(GARDEN, Key.of(self._garden))
            if live is None or given_up(live) != name:
                return
            metadata = {
                "annotations": {REPLACE_LOST_SECRET: None},
                "resourceVersion": resource_version_of(live),
            }
            with suppress(Conflict):  # the status is written concurrently
                await self._client.patch(GARDEN, Key.of(self._garden), {"metadata": metadata})
                return
