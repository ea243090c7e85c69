"""Runs of Pergola's secrets manager, in a cluster in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from conformance.clusters import Cluster
from conformance.subjects.secret_contents import Seen
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, metadata_of
from pergola.kube.client import Client
from pergola.pki import KeyAlgorithm
from pergola.runtime.clock import FakeClock
from pergola.secrets_manager import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    ClientKubeconfig,
    EncryptionKey,
    Kubeconfig,
    Options,
    Rotate,
    RsaKey,
    SecretConfig,
    SecretsManager,
    SecretsManagerError,
    SigningCA,
    StaticToken,
    StaticTokens,
    Use,
)
from pergola.secrets_manager.configs import Inputs, SecretData
from pergola.secrets_manager.managed import IDENTITY, MANAGED_BY, MANAGER, NAME, USE_DATA_FOR
from pergola.secrets_manager.manager import new_data

NAMESPACE: Final = "garden"
OPERATOR: Final = "gardener-operator"
_FAST: Final = KeyAlgorithm.EC_P256
_USES: Final = {"": Use.DEFAULT, "current": Use.CURRENT, "old": Use.OLD}


class _Secrets(Cluster):
    """A cluster that notes when objects are created, as an API server does."""

    def __init__(self, documents: Iterable[JsonObject]) -> None:
        super().__init__(documents)
        self.time = ""

    @property
    def live(self) -> Client:
        """Return this client, because nothing is cached."""
        return self.client

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create an object."""
        metadata = {**metadata_of(obj), "creationTimestamp": self.time}
        return await super().create({**obj, "metadata": metadata}, dry_run=dry_run)


async def run_all(question: JsonObject) -> JsonObject:
    """Return the Secrets after each run, as the oracle answers."""
    cluster, seen = _Secrets(question["secrets"]), Seen()
    runs = [
        await _Run(cluster, seen, number, run).outcome()
        for number, run in enumerate(question["runs"])
    ]
    return {"runs": [*runs]}


class _Run:
    def __init__(self, cluster: _Secrets, seen: Seen, number: int, run: JsonObject) -> None:
        self._cluster, self._seen, self._number, self._run = cluster, seen, number, run
        self._now = datetime.fromisoformat(run["now"])
        self._step = -1
        cluster.time = run["now"]

    async def outcome(self) -> JsonObject:
        """Edit, generate and clean up."""
        await _forget(self._cluster)
        for edit in self._run["edits"]:
            await _edit(self._cluster, edit)
        manager, why = await self._generated()
        documents = self._cluster.documents
        return {
            "failed": bool(why),
            "step": self._step,
            "secrets": self._seen.secrets(documents),
            "got": {} if manager is None else self._got(manager),
            "why": why,
        }

    async def _generated(self) -> tuple[SecretsManager | None, str]:
        manager = None
        try:
            manager = await SecretsManager.open(
                self._cluster.client,
                NAMESPACE,
                OPERATOR,
                clock=FakeClock(self._now),
                rotation_times=_times(self._run["initiated"]),
                generate=_quickly,
            )
            await self._credentials(manager)
            if self._run["cleanup"]:
                await manager.cleanup()
        except SecretsManagerError as error:
            return manager, str(error)
        return manager, ""

    async def _credentials(self, manager: SecretsManager) -> None:
        steps = self._run["generate"]
        for step, each in enumerate(steps):
            self._step = step
            try:
                await manager.generate(_config(each, manager), _options(each))
            finally:
                self._seen.scan(self._cluster.documents, f"{self._number}.{step}")
        self._step = len(steps)

    def _got(self, manager: SecretsManager) -> JsonObject:
        """Return which Secrets the manager returns for each config."""
        found: JsonObject = {}
        for each in self._run["generate"]:
            name = each["name"]
            generated = manager.generated.get(name)
            found[name] = {}
            if generated is not None:
                secrets = {
                    "any": manager.get(name),
                    "current": generated.current,
                    "old": generated.old,
                    "bundle": generated.bundle,
                }
                found[name] = {
                    of: self._seen.named(secret.object_name)
                    for of, secret in secrets.items()
                    if secret is not None
                }
        return found


def _times(initiated: Mapping[str, str]) -> dict[str, datetime]:
    return {name: datetime.fromisoformat(time) for name, time in initiated.items()}


def _quickly(config: SecretConfig, inputs: Inputs) -> SecretData:
    """Generate with cheap keys, and without the cost of hashing a password."""
    match config:
        case CertificateAuthority() | Certificate() | ClientKubeconfig() | RsaKey():
            return new_data(replace(config, algorithm=_FAST), inputs)
        case BasicAuth(username=username, length=length):
            user, password = username.encode(), inputs.random_bytes(length)
            return {"username": user, "password": password, "auth": user + b":x"}
    return new_data(config, inputs)


def _config(question: JsonObject, manager: SecretsManager) -> SecretConfig:
    name, length = question["name"], question.get("length", 32)
    match question["kind"]:
        case "authority":
            return CertificateAuthority(name)
        case "certificate":
            return _certificate(question)
        case "key":
            return RsaKey(name)
        case "encryption":
            return EncryptionKey(name, question.get("provider", ""))
        case "password":
            return BasicAuth(name, question["username"], length)
        case "tokens":
            users = (StaticToken(u["name"], tuple(u["groups"])) for u in question["users"])
            return StaticTokens(name, tuple(users))
        case "client":
            return _client(question, manager)
    return Kubeconfig.of(name, _kubeconfig(question))


def _certificate(question: JsonObject) -> Certificate:
    return Certificate(
        name=question["name"],
        common_name=question["commonName"],
        organizations=tuple(question["organizations"]),
        hosts=tuple(question["hosts"]),
        for_server=question["server"],
        for_client=question["client"],
        publish_ca=not question["unpublished"],
    )


def _client(question: JsonObject, manager: SecretsManager) -> ClientKubeconfig:
    signer = manager.generated.get(question["signedBy"])
    bundle = None if signer is None else signer.bundle
    return ClientKubeconfig(
        name=question["name"],
        user=question["commonName"],
        groups=tuple(question["organizations"]),
        server=f"https://{question['host']}",
        server_ca=b"" if bundle is None else bundle.data["bundle.crt"],
        context=NAMESPACE,
    )


def _kubeconfig(question: JsonObject) -> JsonObject:
    named = {"name": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAMESPACE,
        "clusters": [{**named, "cluster": {"server": f"https://{question['host']}"}}],
        "contexts": [{**named, "context": {"cluster": NAMESPACE, "user": NAMESPACE}}],
        "users": [{**named, "user": {"tokenFile": "/token"}}],
    }


def _options(question: JsonObject) -> Options:
    validity, after = question.get("validity", 0), question.get("ignoreOldAfter", 0)
    signer = question.get("signedBy", "")
    return Options(
        signed_by=SigningCA(signer, _USES[question.get("use", "")]) if signer else None,
        persist=question["persist"],
        rotate=Rotate.KEEP_OLD if question["keepOld"] else Rotate.IN_PLACE,
        ignore_old=question["ignoreOld"],
        ignore_old_after=timedelta(seconds=after) if after else None,
        validity=timedelta(seconds=validity) if validity else None,
        renew_at_percent=question.get("renewAt"),
        labels=question["labels"],
    )


async def _edit(cluster: _Secrets, edit: JsonObject) -> None:
    """Change the newest or oldest Secret of a config, if there is one."""
    selector = f"{MANAGED_BY}={MANAGER},{IDENTITY}={OPERATOR},{NAME}={edit['of']}"
    secrets = await cluster.list(SECRET, NAMESPACE, labels=selector)
    if not secrets:
        return
    secrets.sort(key=lambda secret: str(metadata_of(secret)["creationTimestamp"]))
    secret = secrets[-1 if edit["which"] == "newest" else 0]
    match edit["edit"]:
        case "delete":
            await cluster.delete(SECRET, Key.of(secret))
        case "release":
            await cluster.patch(SECRET, Key.of(secret), {"immutable": None})
        case "label":
            labels: JsonObject = {edit["key"]: edit["value"]}
            await cluster.patch(SECRET, Key.of(secret), {"metadata": {"labels": labels}})
        case "move":
            await _move(cluster, secret, secrets, edit["copies"])


async def _move(
    cluster: _Secrets, secret: JsonObject, secrets: list[JsonObject], copies: int
) -> None:
    """Keep the data of a Secret only in new ones, which the manager has to use instead."""
    config = labels_of(secret)[NAME]
    for number in range(copies):
        name, labels = f"given-{config}-{number}", {USE_DATA_FOR: config}
        metadata: JsonObject = {"name": name, "namespace": NAMESPACE, "labels": {**labels}}
        given = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await cluster.create({**given, "data": secret["data"]})
    for each in secrets:
        await cluster.delete(SECRET, Key.of(each))


async def _forget(cluster: _Secrets) -> None:
    """Delete the Secrets that were moved, as users do once their data is in use."""
    for secret in await cluster.list(SECRET, NAMESPACE, labels=USE_DATA_FOR):
        await cluster.delete(SECRET, Key.of(secret))
