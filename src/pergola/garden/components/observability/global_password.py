"""The Secret with the password of the observability hosts of all Seeds (spec 20 §10.4, §17.2)."""

from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, name_of
from pergola.bundle.versions import Version
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.secrets_manager.managed import MANAGED_BY

NAME: Final = "global-observability-ingress"
"""The credential, if the operator generates it."""
ROLE: Final = {"gardener.cloud/role": "global-monitoring"}
"""The labels of the Secret, whether user-provided or not."""
REPLICA: Final = {"gardener.cloud/purpose": "global-monitoring-secret-replica"}
"""The labels of a copy."""
SEED_PASSWORD: Final = format_selector({"matchLabels": ROLE})
"""Selects the Secret."""
COPIES: Final = format_selector({"matchLabels": REPLICA})
"""Selects the copies."""

_GENERATED_SINCE: Final = Version(1, 150)


def is_generated_here(landscape: Landscape) -> bool:
    """Return whether the operator generates the password, and not gardener-controller-manager."""
    return Version.parse(landscape.gardener_version) >= _GENERATED_SINCE


async def provided(client: Client) -> JsonObject | None:
    """Return the Secret in the runtime cluster that a user provides, or None.

    Raises:
        OperatorError: Users provide more than one.
        KubeError: The API server refused, or did not answer.
    """
    found = await client.list(SECRET, NAMESPACE, labels=SEED_PASSWORD)
    users = [each for each in found if MANAGED_BY not in labels_of(each)]
    if len(users) > 1:
        names = ", ".join(sorted(str(Key.of(each)) for each in users))
        [label] = ("=".join(each) for each in ROLE.items())
        raise OperatorError(
            f"there are {len(users)} Secrets with the label {label} ({names}), but only one "
            "can be the password of all Seeds: remove the label of the others"
        )
    return users[0] if users else None


async def password_secret(landscape: Landscape, client: Client) -> str:
    """Return the name of the Secret in the runtime cluster; empty if there is none yet.

    Raises:
        OperatorError: Users provide more than one.
        KubeError: The API server refused, or did not answer.
    """
    if not is_generated_here(landscape):
        copies = await client.list(SECRET, NAMESPACE, labels=COPIES, metadata_only=True)
        return min(map(name_of, copies), default="")
    secret = await provided(client)
    if secret is not None:
        return name_of(secret)
    generated = landscape.credentials.generated.get(NAME)
    return generated.current.object_name if generated else ""
