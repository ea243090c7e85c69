"""Encryption at rest in an API server (spec 20 §17.3).

During a rotation, every replica must know the new key before any of them encrypts with it. Until
then the old key stays first.
"""

import base64
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components.api_server.part import ApiServer, Part, mounted_secret
from pergola.garden.components.api_server.recovery import (
    CONFIGURATION,
    DEFAULT_PROVIDER,
    recovery,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.encryption_at_rest import (
    ENCRYPTION_VOLUME,
    POPULATED,
    encrypted_now,
    is_served_by_gardener,
    resource_keys,
)
from pergola.garden.landscape.lost_secrets import REMEDY, REPLACE_LOST_SECRET, given_up_in
from pergola.garden.landscape.phases import COMPLETING, PREPARING, phase_of
from pergola.kube.yaml import dump
from pergola.manifests import manifest
from pergola.secrets_manager import (
    EncryptionKey,
    Irreplaceable,
    ManagedSecret,
    Options,
    Rotate,
)

_PATH: Final = "/etc/kubernetes/etcd-encryption-secret"
_GROUP_READABLE: Final = 0o640
_DATA: Final = "main-virtual-garden-etcd-"
"""The prefix of the claims of the etcd with everything that is encrypted."""
_IDENTITY: Final[JsonObject] = {"identity": {}}


def encryption_key(landscape: Landscape, server: ApiServer) -> Credential:
    """Return the credential with the encryption key of an API server."""
    provider = server.settings.encryption_config.provider.type
    config = EncryptionKey(
        key_name(server), provider="" if provider == DEFAULT_PROVIDER else provider
    )
    return Credential(
        config,
        Options(
            persist=True,
            rotate=Rotate.KEEP_OLD,
            ignore_old=encryption_phase(landscape) == COMPLETING,
            irreplaceable=irreplaceable(landscape, server),
        ),
    )


def irreplaceable(landscape: Landscape, server: ApiServer) -> Irreplaceable:
    """Return the evidence that the key of an API server has already encrypted data.

    A key that a rotation is about to introduce encrypts nothing until all replicas know it.
    """
    return Irreplaceable(
        use=f"read what {server.name} encrypted in etcd",
        records=tuple(_records(landscape, server)),
        copies=f"role={_configuration_name(server)}",
        recover=recovery(landscape.encryption_configuration),
        volumes=_DATA,
        is_rotating=encryption_phase(landscape) == PREPARING and not landscape.is_new_key_known,
        remedy=REMEDY,
        annotation=REPLACE_LOST_SECRET,
        given_up=given_up_in(landscape),
    )


def _records(landscape: Landscape, server: ApiServer) -> Iterator[str]:
    status = landscape.garden.status
    credentials = status.credentials if status else None
    if credentials is not None and credentials.encryption_at_rest is not None:
        yield "status.credentials.encryptionAtRest of the Garden"
    elif status is not None and status.encrypted_resources:
        yield "status.encryptedResources of the Garden"
    if encryption_phase(landscape) not in ("", PREPARING):
        yield "status.credentials.rotation.etcdEncryptionKey of the Garden"
    if encryption_phase(landscape) == PREPARING and landscape.is_new_key_known:
        yield f"the annotation {POPULATED} of Deployment {NAMESPACE}/{server.deployment}"


def key_name(server: ApiServer) -> str:
    """Return the name of that credential."""
    return f"{server.name}-etcd-encryption-key"


def encryption(landscape: Landscape, server: ApiServer) -> Part:
    """Return the flag and files for encryption at rest; `encryption_key` must exist already."""
    name = _configuration_name(server)
    content = dump(configuration(landscape, server)).encode()
    secret = make_unique(
        manifest(
            "v1",
            "Secret",
            name,
            namespace=NAMESPACE,
            labels={"role": name},
            type="Opaque",
            data={CONFIGURATION: base64.b64encode(content).decode()},
        )
    )
    files = mounted_secret(
        ENCRYPTION_VOLUME, _PATH, name_of(secret), mode=_GROUP_READABLE, read_only=True
    )
    return files + Part(
        args=(f"--encryption-provider-config={_PATH}/{CONFIGURATION}",), objects=(secret,)
    )


def _configuration_name(server: ApiServer) -> str:
    return f"{server.name}-etcd-encryption-configuration"


def configuration(landscape: Landscape, server: ApiServer) -> JsonObject:
    """Return the `EncryptionConfiguration`.

    A resource that was encrypted but no longer should be stays readable and is written unencrypted.
    """
    providers = _providers(_keys(landscape, server))
    desired = {
        *server.always_encrypted,
        *resource_keys(server.settings.encryption_config.resources),
    }
    removed = _encrypted(landscape, server) - desired
    resources: list[JsonObject] = [
        {"resources": sorted(desired), "providers": [*providers, _IDENTITY]}
    ]
    if removed:
        resources.append({"resources": sorted(removed), "providers": [_IDENTITY, *providers]})
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": resources,
    }


def _encrypted(landscape: Landscape, server: ApiServer) -> set[str]:
    is_gardener = any(map(is_served_by_gardener, server.always_encrypted))
    found = resource_keys(encrypted_now(landscape.garden.status).resources)
    return {resource for resource in found if is_served_by_gardener(resource) is is_gardener}


def _keys(landscape: Landscape, server: ApiServer) -> list[ManagedSecret]:
    """Return the keys; the first one encrypts."""
    name = key_name(server)
    current, old = landscape.credentials.current(name), landscape.credentials.old(name)
    if old is None:
        return [current]
    if encryption_phase(landscape) == PREPARING and not landscape.is_new_key_known:
        return [old, current]
    return [current, old]


def _providers(keys: Sequence[ManagedSecret]) -> list[JsonObject]:
    return [
        {provider: {"keys": [_key(key) for key in group]}}
        for provider, group in groupby(keys, _provider)
    ]


def _provider(key: ManagedSecret) -> str:
    return key.data.get("provider", b"").decode() or DEFAULT_PROVIDER


def _key(secret: ManagedSecret) -> JsonObject:
    value = secret.data["secret"]
    if secret.data.get("encoding") == b"none":
        value = base64.b64encode(value)
    return {"name": secret.data["key"].decode(), "secret": value.decode()}


def encryption_phase(landscape: Landscape) -> str:
    """Return the phase of the rotation of the keys; empty if there was none."""
    return phase_of(landscape.rotation.etcd_encryption_key)
