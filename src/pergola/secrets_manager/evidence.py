"""Observing the evidence that a missing Secret is lost rather than new."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from pergola.api.kinds import PVC, SECRET
from pergola.api.objects import Key
from pergola.pki import CertificateError
from pergola.secrets_manager.configs import SecretConfig
from pergola.secrets_manager.loss import Evidence, Irreplaceable
from pergola.secrets_manager.managed import ADOPTED_FOR, BUNDLE_FOR, ManagedSecret
from pergola.secrets_manager.store import Store

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


async def observe_evidence(
    store: Store, config: SecretConfig, irreplaceable: Irreplaceable
) -> Evidence:
    """Return what exists of a credential whose Secret is missing.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    live = store.client.live
    copies = irreplaceable.copies
    found = await live.list(SECRET, store.namespace, labels=copies) if copies else []
    return Evidence(
        older=[secret.data for secret in store.named(config.name)],
        copies=sorted(found, key=Key.of),
        bundle=_bundle_of_lost(store, config),
        claims=await _claims(store, irreplaceable.volumes),
    )


async def _claims(store: Store, prefix: str) -> list[Key]:
    if not prefix:
        return []
    live = store.client.live
    found = await live.list(PVC, store.namespace, metadata_only=True)
    return sorted(key for key in map(Key.of, found) if key.name.startswith(prefix))


def _bundle_of_lost(store: Store, config: SecretConfig) -> Key | None:
    """Return the newest bundle if it publishes something that no Secret of the config has.

    A bundle of another implementation may have another format, so it counts only if there is no
    Secret of the config.
    """
    bundles = [
        each for each in store.secrets.values() if each.labels.get(BUNDLE_FOR) == config.name
    ]
    if not bundles or not config.bundle_key:
        return None
    newest = max(bundles, key=lambda each: (each.issued_at or _LONG_AGO, each.created))
    secrets = store.named(config.name)
    if newest.is_foreign and ADOPTED_FOR not in newest.labels:
        return None if secrets else Key.of(newest.obj)
    return Key.of(newest.obj) if _unmatched(config, newest, secrets) else None


def _unmatched(config: SecretConfig, bundle: ManagedSecret, secrets: list[ManagedSecret]) -> bytes:
    content = bundle.data.get(config.bundle_key, b"")
    for secret in secrets:
        with suppress(KeyError, CertificateError):  # its data is unusable
            content = content.replace(config.bundled(secret.data), b"")
    return content.strip()
