"""The Secrets that must outlive their cluster; all others can be generated from them."""

from collections.abc import Iterable

from pergola.kube.client import Client
from pergola.secrets_manager.managed import BUNDLE_FOR, PERSIST, ManagedSecret
from pergola.secrets_manager.store import Store


async def observe_managed(client: Client, namespace: str, identity: str) -> list[ManagedSecret]:
    """Return all Secrets of a manager identity.

    Raises:
        SecretsManagerError: One contains a value that is not base64.
        KubeError: The API server refused, or did not answer.
    """
    return [*(await Store.read(client, namespace, identity)).secrets.values()]


def durable(secrets: Iterable[ManagedSecret]) -> list[ManagedSecret]:
    """Return the Secrets whose loss others would notice, oldest first.

    These Secrets have the label `persist`, or a bundle through which others trust an authority or a
    signing key. Old ones that are still trusted are included.
    """
    found = list(secrets)
    published = {secret.labels.get(BUNDLE_FOR) for secret in found} - {None}
    kept = (
        secret
        for secret in found
        if BUNDLE_FOR not in secret.labels
        and (secret.labels.get(PERSIST) == "true" or secret.name in published)
    )
    return sorted(kept, key=lambda secret: (secret.age_rank, secret.object_name))
