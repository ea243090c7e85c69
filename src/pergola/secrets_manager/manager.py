"""The secrets manager: one instance for each run of a flow (spec 20 §10.2)."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self, TypeAlias

from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.pki import Authority, CertificateError, Pair, read_certificate
from pergola.runtime.clock import Clock
from pergola.secrets_manager.adoption import (
    adopted_bundle,
    adopted_secret,
    labelled_data,
    labelled_sources,
    labels_of_adopted,
)
from pergola.secrets_manager.configs import Inputs, SecretConfig, SecretData, canonical
from pergola.secrets_manager.errors import SecretsManagerError
from pergola.secrets_manager.evidence import observe_evidence
from pergola.secrets_manager.lifetime import default_validity, initiation_times, lifetime_labels
from pergola.secrets_manager.loss import Irreplaceable, is_replacement, recovered
from pergola.secrets_manager.managed import (
    BUNDLE_FOR,
    CA_CHECKSUM,
    CONFIG_CHECKSUM,
    IDENTITY,
    INITIATED,
    ISSUED_AT,
    MANAGED_BY,
    MANAGER,
    NAME,
    PERSIST,
    ManagedSecret,
    checksum,
    data_checksum,
    object_name,
)
from pergola.secrets_manager.options import Options, Rotate, Use
from pergola.secrets_manager.store import Store

_BUNDLE: Final = "-bundle"

Generate: TypeAlias = Callable[[SecretConfig, Inputs], SecretData]
"""Returns new data of a config."""


def new_data(config: SecretConfig, inputs: Inputs) -> SecretData:
    """Return the data that a config generates."""
    return config.generate(inputs)


@dataclass(frozen=True, slots=True)
class Generated:
    """The Secrets of one config.

    Attributes:
        old: The previous Secret, while it is kept.
        bundle: The certificates or keys of both; only for configs that others have to trust.
    """

    current: ManagedSecret
    old: ManagedSecret | None = None
    bundle: ManagedSecret | None = None


class SecretsManager:
    """Generates credentials as Secrets, in one namespace and for one manager identity.

    Open one for each run: the Secrets listed at the beginning decide which credentials to renew,
    and `cleanup` deletes those that the run did not touch, so call it only after complete success.

    Args:
        rotation_times: The time when a user started the rotation of each config; overrides
            automatic renewal.
        random_bytes: Returns the given number of unpredictable bytes.
        generate: Generates new data; replaced in rehearsals, which do without expensive keys.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rotation_times: Mapping[str, datetime],
        random_bytes: Callable[[int], bytes] = os.urandom,
        generate: Generate = new_data,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes
        self._generate = generate
        self._initiated = initiation_times(store.secrets.values(), clock.now())
        for name, started in rotation_times.items():
            self._initiated[name] = str(int(started.timestamp()))
        self._generated: dict[str, Generated] = {}
        self._requests: dict[str, tuple[SecretConfig, Options]] = {}
        self._replaced: set[str] = set()
        self._recovered: set[str] = set()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @classmethod
    async def open(
        cls,
        client: Client,
        namespace: str,
        identity: str,
        *,
        clock: Clock,
        rotation_times: Mapping[str, datetime] | None = None,
        generate: Generate = new_data,
    ) -> Self:
        """Start a run: list the Secrets of an identity; it never touches those of others.

        Args:
            identity: The value of the label `manager-identity`.
            generate: See the class.

        Raises:
            SecretsManagerError: A Secret holds a value that is not base64.
        """
        store = await Store.read(client, namespace, identity)
        return cls(store, clock, rotation_times or {}, generate=generate)

    async def generate(self, config: SecretConfig, options: Options | None = None) -> ManagedSecret:
        """Return the current Secret of a config; create, adopt or repair it as needed.

        A second call with an equal config and equal options returns what the first one did.

        Raises:
            SecretLost: It is missing, irreplaceable, and not given up.
            SecretsManagerError: The signing authority was not generated in this run, the options do
                not suit the config, or the data to adopt is ambiguous or unusable.
        """
        options = options or Options()
        async with self._locks[config.name]:
            if self._requests.get(config.name) == (config, options):
                return self._generated[config.name].current
            signer = self._signer(config, options)
            labels = self._labels(config, options, signer)
            secret = await self._ensure(config, options, signer, labels)
            old = self._old(secret, options)
            bundle = await self._bundle(config, secret, old) if config.bundle_key else None
            self._generated[config.name] = Generated(secret, old, bundle)
            self._requests[config.name] = (config, options)
            return secret

    @property
    def generated(self) -> Mapping[str, Generated]:
        """The Secrets generated in this run, by config name."""
        return self._generated

    @property
    def replaced(self) -> AbstractSet[str]:
        """The names of the lost Secrets that this run replaced with new ones."""
        return self._replaced

    @property
    def recovered(self) -> AbstractSet[str]:
        """The names of the lost Secrets that this run recovered from copies."""
        return self._recovered

    @property
    def used(self) -> AbstractSet[str]:
        """The names of the Secrets that this run uses."""
        return self._store.touched

    def get(self, name: str) -> ManagedSecret:
        """Return the bundle of a config if it has one, else its current Secret.

        Raises:
            SecretsManagerError: The config was not generated in this run.
        """
        generated = self._of(name)
        return generated.bundle or generated.current

    def current(self, name: str) -> ManagedSecret:
        """Return the current Secret of a config; raises as `get` does."""
        return self._of(name).current

    def old(self, name: str) -> ManagedSecret | None:
        """Return the old Secret of a config, if it is kept; raises as `get` does."""
        return self._of(name).old

    async def cleanup(self, *, is_complete: bool = True) -> list[str]:
        """Delete this identity's Secrets that the run did not touch; return their names.

        Args:
            is_complete: Whether the run generated all credentials. Otherwise, only the former
                Secrets of those that it generated are deleted: others may be in use.
        """
        names = None
        if not is_complete:
            names = {*self._generated, *(f"{name}{_BUNDLE}" for name in self._generated)}
        return await self._store.delete_untouched(names)

    def _of(self, name: str) -> Generated:
        try:
            return self._generated[name]
        except KeyError:
            raise SecretsManagerError(f"secret {name} has not been generated in this run") from None

    def _signer(self, config: SecretConfig, options: Options) -> ManagedSecret | None:
        if config.is_signed != (options.signed_by is not None):
            needs = "needs an authority to sign it" if config.is_signed else "cannot be signed"
            raise SecretsManagerError(f"secret {config.name} {needs}")
        if options.signed_by is None:
            return None
        authority = self._of(options.signed_by.name)
        # An authority that expired while the operator was down cannot sign, and no bundle has it.
        old = authority.old
        usable = None if old is None or self._is_expired(old.data.get("ca.crt")) else old
        match options.signed_by.use:
            case Use.CURRENT:
                return authority.current
            case Use.OLD:
                return usable or authority.current
            case Use.DEFAULT:
                return (config.for_server and usable) or authority.current

    def _labels(
        self, config: SecretConfig, options: Options, signer: ManagedSecret | None
    ) -> dict[str, str]:
        labels = dict(options.labels) | {
            NAME: config.name,
            MANAGED_BY: MANAGER,
            IDENTITY: self._store.identity,
            CONFIG_CHECKSUM: checksum(canonical(_fingerprint(config, options))),
            INITIATED: self._initiated.get(config.name, ""),
        }
        if signer is not None:
            labels[CA_CHECKSUM] = data_checksum(signer.data)
        if options.persist:
            labels[PERSIST] = "true"
        return labels

    async def _ensure(
        self,
        config: SecretConfig,
        options: Options,
        signer: ManagedSecret | None,
        labels: Mapping[str, str],
    ) -> ManagedSecret:
        """Return the Secret of these labels; find, adopt or generate it, and repair its labels."""
        name = object_name(
            config.name, labels[CONFIG_CHECKSUM], labels.get(CA_CHECKSUM, ""), labels[INITIATED]
        )
        secret = self._store.secrets.get(name)
        if secret is not None and config.is_replaceable and _is_damaged(config, secret):
            await self._store.discard(secret)
            secret = None
        if secret is None:
            secret, labels = await self._adopt_or_create(config, options, signer, labels, name)
        return await self._store.keep(secret, {**labels, **self._lifetime(config, secret, options)})

    async def _adopt_or_create(
        self,
        config: SecretConfig,
        options: Options,
        signer: ManagedSecret | None,
        labels: Mapping[str, str],
        name: str,
    ) -> tuple[ManagedSecret, Mapping[str, str]]:
        """Return the Secret to use in place of a missing one, and the labels that it has then."""
        authority = None if signer is None else authority_of(signer)
        same_name = self._store.named(config.name)
        adopted = adopted_secret(config, authority, same_name, labels)
        if adopted is not None:
            return adopted, labels_of_adopted(adopted, labels)
        sources = [] if same_name else await labelled_sources(self._store, config.name)
        data = labelled_data(config, authority, sources)
        if data is None:
            data = await self._new_data(config, options, authority, name)
        return await self._store.create(name, labels, data), labels

    async def _new_data(
        self, config: SecretConfig, options: Options, authority: Authority | None, name: str
    ) -> SecretData:
        """Return recovered or generated data for a config."""
        if options.irreplaceable is not None:
            found = await self._if_lost(config, options.irreplaceable, name)
            if found is not None:
                return found
        now = self._clock.now()
        inputs = Inputs(
            object_name=name,
            now=now,
            lifetime=options.validity or default_validity(now),
            random_bytes=self._random_bytes,
            signer=authority,
        )
        try:
            return await asyncio.to_thread(self._generate, config, inputs)
        except CertificateError as error:
            raise SecretsManagerError(f"cannot generate secret {config.name}: {error}") from None

    async def _if_lost(
        self, config: SecretConfig, irreplaceable: Irreplaceable, name: str
    ) -> SecretData | None:
        """Return the recovered data of a lost Secret; None if it is to be generated."""
        evidence = await observe_evidence(self._store, config, irreplaceable)
        found = recovered(irreplaceable, evidence, name)
        if found is not None:
            self._recovered.add(name)
            return found
        if is_replacement(Key(self._store.namespace, name), irreplaceable, evidence):
            self._replaced.add(name)
        return None

    def _lifetime(
        self, config: SecretConfig, secret: ManagedSecret, options: Options
    ) -> dict[str, str]:
        try:
            return lifetime_labels(config, secret, options, self._clock.now())
        except (KeyError, CertificateError) as error:
            raise SecretsManagerError(
                f"Secret {self._store.namespace}/{secret.object_name} holds no usable certificate "
                f"({error}); delete it to generate a new one"
            ) from None

    def _old(self, current: ManagedSecret, options: Options) -> ManagedSecret | None:
        if options.rotate is Rotate.IN_PLACE or options.ignore_old:
            return None
        age = self._clock.now() - (current.issued_at or self._clock.now())
        if options.ignore_old_after is not None and age >= options.ignore_old_after:
            return None
        others = [
            secret
            for secret in self._store.named(current.name)
            if secret.object_name != current.object_name
        ]
        if not others:
            return None
        old = max(others, key=lambda secret: secret.age_rank)
        self._store.touched.add(old.object_name)
        return old

    async def _bundle(
        self, config: SecretConfig, current: ManagedSecret, old: ManagedSecret | None
    ) -> ManagedSecret:
        secrets = [current]
        if old is not None and not self._has_expired(config, old):
            secrets.append(old)
        content = b"".join(config.bundled(secret.data) for secret in secrets)
        name = f"{config.name}{_BUNDLE}"
        labels = {
            NAME: name,
            MANAGED_BY: MANAGER,
            IDENTITY: self._store.identity,
            BUNDLE_FOR: config.name,
            CONFIG_CHECKSUM: checksum(content),
            INITIATED: "",
        }
        key = object_name(name, labels[CONFIG_CHECKSUM], "", "")
        data = {config.bundle_key: content}
        secret = self._store.secrets.get(key)
        if secret is None and (adopted := adopted_bundle(self._store.named(name), data)):
            secret, labels = adopted, labels_of_adopted(adopted, labels)
        if secret is None:
            secret = await self._store.create(key, labels, data)
        issued = secret.labels.get(ISSUED_AT) or str(int(self._clock.now().timestamp()))
        return await self._store.keep(secret, labels | {ISSUED_AT: issued})

    def _has_expired(self, config: SecretConfig, secret: ManagedSecret) -> bool:
        return self._is_expired(config.certificate(secret.data))

    def _is_expired(self, pem: bytes | None) -> bool:
        return pem is not None and read_certificate(pem).not_valid_after_utc <= self._clock.now()


def _fingerprint(config: SecretConfig, options: Options) -> JsonObject:
    """Return all properties whose change requires new data; certificates get a new validity."""
    found = config.fingerprint()
    if config.is_signed and options.validity is not None:
        found["validity"] = options.validity.total_seconds()
    return found


def _is_damaged(config: SecretConfig, secret: ManagedSecret) -> bool:
    """Return whether a Secret lacks data, or holds an unreadable certificate."""
    try:
        pem = config.certificate(secret.data)
        if pem is not None:
            read_certificate(pem)
    except (KeyError, CertificateError):
        return True
    return not secret.data or not all(secret.data.values())


def authority_of(secret: ManagedSecret) -> Authority:
    """Return the authority in a Secret.

    Raises:
        SecretsManagerError: It contains none.
    """
    try:
        return Authority(Pair(secret.data["ca.crt"], secret.data["ca.key"]))
    except (KeyError, CertificateError) as error:
        raise SecretsManagerError(
            f"Secret {secret.object_name} holds no usable authority: {error}"
        ) from None
