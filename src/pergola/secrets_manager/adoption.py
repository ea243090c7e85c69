"""Adoption of existing credentials (spec 20 §10.5).

A landscape's authorities and keys must survive the change to another secrets manager: generating
new ones would break every client.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.pki import Authority
from pergola.runtime.logging import get_logger
from pergola.secrets_manager.configs import SecretConfig, SecretData
from pergola.secrets_manager.errors import SecretsManagerError
from pergola.secrets_manager.managed import (
    ADOPTED_FOR,
    CA_CHECKSUM,
    CONFIG_CHECKSUM,
    INITIATED,
    USE_DATA_FOR,
    ManagedSecret,
)
from pergola.secrets_manager.store import Store

log = get_logger("secrets-manager")

_CHECKSUMS: Final = frozenset({CONFIG_CHECKSUM, CA_CHECKSUM})


async def labelled_sources(store: Store, name: str) -> list[ManagedSecret]:
    """Return the Secrets with the label that requests to use their data for a config."""
    selector = f"{USE_DATA_FOR}={name}"
    found = await store.client.live.list(SECRET, store.namespace, labels=selector)
    return [ManagedSecret.of(obj) for obj in found]


def adopted_secret(
    config: SecretConfig,
    signer: Authority | None,
    same_name: Sequence[ManagedSecret],
    labels: Mapping[str, str],
) -> ManagedSecret | None:
    """Return another implementation's Secret that holds the data of a config, or None.

    It is used as it is, under its own name: workloads that mount it are not restarted, and the
    other implementation finds it again. Once the config changes, it no longer counts.

    Args:
        same_name: Managed Secrets of the config.
        labels: As of a Secret of ours: the rotation must be the same.

    Raises:
        SecretsManagerError: The data is unusable, and replacing it would break clients.
    """
    foreign = [s for s in same_name if s.is_foreign and s.initiated == labels[INITIATED]]
    if not foreign:
        return None
    newest = max(foreign, key=lambda secret: secret.age_rank)
    known = newest.labels.get(ADOPTED_FOR)
    problem = config.problem_with(newest.data, signer)
    if not problem:
        if known is None:
            log.info("secret adopted", name=config.name, source=newest.object_name)
        return newest if known in (None, labels[CONFIG_CHECKSUM]) else None
    if config.is_replaceable:
        return None
    raise SecretsManagerError(
        f"Secret {Key.of(newest.obj)} holds the data for {config.name}, but {problem}; repair it, "
        "or delete it to generate new data"
    )


def adopted_bundle(same_name: Sequence[ManagedSecret], data: SecretData) -> ManagedSecret | None:
    """Return another implementation's Secret with the data of a bundle, or None."""
    found = [secret for secret in same_name if secret.is_foreign and secret.data == data]
    return max(found, key=lambda secret: secret.age_rank, default=None)


def labels_of_adopted(secret: ManagedSecret, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of an adopted Secret: the checksums stay those of its implementation.

    Args:
        labels: As of a Secret of ours.
    """
    theirs = {name: value for name, value in secret.labels.items() if name in _CHECKSUMS}
    ours = {name: value for name, value in labels.items() if name not in _CHECKSUMS}
    return {**ours, **theirs, ADOPTED_FOR: labels[CONFIG_CHECKSUM]}


def labelled_data(
    config: SecretConfig, signer: Authority | None, labelled: Sequence[ManagedSecret]
) -> SecretData | None:
    """Return the data of the Secret whose label names a config, or None without one.

    Such Secrets count only until the first Secret of the config exists; otherwise a rotation would
    restore the data it rotates out.

    Raises:
        SecretsManagerError: Several Secrets are labelled, or the data is unusable.
    """
    if not labelled:
        return None
    if len(labelled) > 1:
        names = ", ".join(sorted(str(Key.of(secret.obj)) for secret in labelled))
        raise SecretsManagerError(
            f"several Secrets have the label {USE_DATA_FOR}={config.name}: {names}; keep it on one"
        )
    source = labelled[0]
    if problem := config.problem_with(source.data, signer):
        raise SecretsManagerError(
            f"Secret {Key.of(source.obj)} has the label {USE_DATA_FOR}={config.name}, but {problem}"
        )
    log.info("secret adopted", name=config.name, source=source.object_name)
    return source.data
