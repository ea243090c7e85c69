"""The permission of a user to replace a lost credential, which is used up by the first new one."""

from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject, Key, annotations_of, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.operator.garden.landscape import NAMESPACE
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger
from pergola.secrets_manager import SecretsManager

log = get_logger("garden")

REPLACE_LOST_SECRET: Final = "operator.gardener.cloud/replace-lost-secret"  # noqa: S105 - a name
"""The annotation of a Garden with the name of the lost Secret for which to generate a new one."""

REPLACEABLE: Final = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
)
"""The credentials that the annotation may name by their Secrets."""

REPLACED: Final = "LostSecretReplaced"
"""The reason of the Event about a new Secret."""
KEPT: Final = "SecretNotLost"
"""The reason of the Event about a Secret that exists."""


def given_up(garden: JsonObject) -> str:
    """Return the name of the Secret that a user has given up; empty if there is none."""
    return annotations_of(garden).get(REPLACE_LOST_SECRET, "")


async def remove_permission(
    client: Client, garden: JsonObject, secrets: SecretsManager, events: Recorder
) -> None:
    """Remove the annotation once the Secret that it names exists, with an Event.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
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
