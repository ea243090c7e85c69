"""The Secrets of one manager identity in one namespace: list, create, repair, delete."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Self

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.runtime.logging import get_logger
from pergola.secrets_manager.configs import SecretData
from pergola.secrets_manager.managed import (
    IDENTITY,
    MANAGED_BY,
    MANAGER,
    ManagedSecret,
    rendered,
)

log = get_logger("secrets-manager")


class Store:
    """The Secrets as listed once, plus those created since.

    Attributes:
        secrets: By object name.
        touched: The names of the Secrets that this run uses; `delete_untouched` deletes all others.
    """

    def __init__(
        self, client: Client, namespace: str, identity: str, secrets: Mapping[str, ManagedSecret]
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.identity = identity
        self.secrets = dict(secrets)
        self.touched: set[str] = set()

    @classmethod
    async def read(cls, client: Client, namespace: str, identity: str) -> Self:
        """List the Secrets of an identity with a request: a cache may lack the newest one.

        Raises:
            SecretsManagerError: One holds a value that is not base64.
        """
        selector = f"{MANAGED_BY}={MANAGER},{IDENTITY}={identity}"
        listed = await client.live.list(SECRET, namespace, labels=selector)
        found = map(ManagedSecret.of, listed)
        return cls(client, namespace, identity, {secret.object_name: secret for secret in found})

    def named(self, name: str) -> list[ManagedSecret]:
        """Return all Secrets of a config name."""
        return [secret for secret in self.secrets.values() if secret.name == name]

    async def create(self, name: str, labels: Mapping[str, str], data: SecretData) -> ManagedSecret:
        """Create a Secret; if one of that name already exists, return that."""
        key = Key(self.namespace, name)
        try:
            return ManagedSecret.of(await self.client.create(rendered(key, labels, data)))
        except AlreadyExists:  # its labels were edited, or another run created it after the list
            return ManagedSecret.of(await self.client.get(SECRET, key))

    async def keep(self, secret: ManagedSecret, labels: Mapping[str, str]) -> ManagedSecret:
        """Use a Secret in this run; repair its immutability, and give it exactly these labels."""
        changed: dict[str, str | None] = {
            name: value for name, value in labels.items() if secret.labels.get(name) != value
        }
        changed |= dict.fromkeys(secret.labels.keys() - labels.keys())
        if changed or secret.obj.get("immutable") is not True:
            patch = {"metadata": {"labels": changed, "uid": secret.uid}, "immutable": True}
            key = Key(self.namespace, secret.object_name)
            secret = ManagedSecret.of(await self.client.patch(SECRET, key, patch))
        self.secrets[secret.object_name] = secret
        self.touched.add(secret.object_name)
        return secret

    async def discard(self, secret: ManagedSecret) -> None:
        """Delete a Secret whose data is unusable, so that another one can have its name."""
        name = secret.object_name
        log.warning("damaged secret replaced", namespace=self.namespace, name=name)
        with suppress(NotFound):
            await self.client.delete(SECRET, Key(self.namespace, name), uid=secret.uid)
        del self.secrets[name]

    async def delete_untouched(self, of: Collection[str] | None = None) -> list[str]:
        """Delete the Secrets that this run does not use; return their names in order.

        Args:
            of: Only Secrets of these configs; of all by default.
        """
        deleted: list[str] = []
        for name in sorted(self.secrets.keys() - self.touched):
            if of is not None and self.secrets[name].name not in of:
                continue
            key = Key(self.namespace, name)
            try:
                await self.client.delete(SECRET, key, uid=self.secrets.pop(name).uid)
            except NotFound:
                continue
            deleted.append(name)
        if deleted:
            log.info("secrets deleted", namespace=self.namespace, names=deleted)
        return deleted
