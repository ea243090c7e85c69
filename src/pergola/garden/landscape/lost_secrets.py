"""Credentials that are not replaced silently, and the permission of a user to replace a lost one.

The first new one uses up the permission.
"""

from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject, Key, annotations_of, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape import NAMESPACE, Landscape
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
        is_rotating=phase == "Preparing",
        remedy=REMEDY,
        annotation=REPLACE_LOST_SECRET,
        given_up=given_up,
    )


async def settle(
    client: Client, garden: JsonObject, secrets: SecretsManager, events: Recorder
) -> None:
    """Report what happened to lost Secrets, and remove the annotation once its Secret exists.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    for name in sorted(secrets.recovered):
        log.warning("lost secret recovered", secret=name)
        note = f"Secret {Key(NAMESPACE, name)} was lost; its data is recovered from a copy"
        events.warning(Regarding.of(garden), RECOVERED, note)
    await _remove_permission(client, garden, secrets, events)


async def _remove_permission(
    client: Client, garden: JsonObject, secrets: SecretsManager, events: Recorder
) -> None:
    name = given_up(garden)
    if name not in {each.current.object_name for each in secrets.generated.values()}:
        return
    secret = Key(NAMESPACE, name)
    if name in secrets.replaced:
        log.warning("lost secret replaced", secret=str(secret))
        note = f"Secret {secret} was lost, and has new data: the old data cannot be restored"
        events.warning(Regarding.of(garden), REPLACED, note)
    else:
        note = f"Secret {secret} exists, so the annotation {REPLACE_LOST_SECRET} is removed"
        events.warning(Regarding.of(garden), KEPT, note)
    while True:
        live = await client.find(GARDEN, Key.of(garden))
        if live is None or given_up(live) != name:
            return
        metadata = {
            "annotations": {REPLACE_LOST_SECRET: None},
            "resourceVersion": resource_version_of(live),
        }
        with suppress(Conflict):  # the status is written concurrently
            await client.patch(GARDEN, Key.of(garden), {"metadata": metadata})
            return
