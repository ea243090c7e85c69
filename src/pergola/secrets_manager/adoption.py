"""Adoption of existing credentials (spec 20 §10.5).

A landscape's authorities and keys must survive the change to another secrets manager: generating
new ones would break every client.
"""

from collections.abc import Sequence

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.pki import Authority
from pergola.runtime.logging import get_logger
from pergola.secrets_manager.configs import SecretConfig, SecretData
from pergola.secrets_manager.errors import SecretsManagerError
from pergola.secrets_manager.managed import USE_DATA_FOR, ManagedSecret
from pergola.secrets_manager.store import Store

log = get_logger("secrets-manager")


async def labelled_sources(store: Store, name: str) -> list[ManagedSecret]:
    """Return the Secrets with the label that requests to use their data for a config."""
    selector = f"{USE_DATA_FOR}={name}"
    found = await store.client.live.list(SECRET, store.namespace, labels=selector)
    return [ManagedSecret.of(obj) for obj in found]


def adopted_data(
    config: SecretConfig,
    signer: Authority | None,
    labelled: Sequence[ManagedSecret],
    same_name: Sequence[ManagedSecret],
    initiated: str,
) -> SecretData | None:
    """Return existing data to use for a config, or None to generate new data.

    Args:
        labelled: Secrets whose label names the config. They count only until the first Secret of
            the config exists; otherwise a rotation would restore the data it rotates out.
        same_name: Managed Secrets of the config.
        initiated: The rotation that the data must belong to.

    Raises:
        SecretsManagerError: Several Secrets are labelled, or the data is unusable and replacing it
            would break clients.
    """
    if labelled:
        return _labelled_data(config, signer, labelled)
    foreign = [s for s in same_name if s.is_foreign and s.initiated == initiated]
    if not foreign:
        return None
    newest = max(foreign, key=lambda secret: secret.age_rank)
    problem = config.problem_with(newest.data, signer)
    if not problem:
        log.info("secret adopted", name=config.name, source=newest.object_name)
        return newest.data
    if config.is_replaceable:
        return None
    raise SecretsManagerError(
        f"Secret {Key.of(newest.obj)} holds the data for {config.name}, but {problem}; repair it, "
        "or delete it to generate new data"
    )


def _labelled_data(
    config: SecretConfig, signer: Authority | None, labelled: Sequence[ManagedSecret]
) -> SecretData:
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
