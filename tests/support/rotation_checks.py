"""Check a living Garden before, during and after the rotation of all its credentials.

```python
old = await OldCredentials.of(garden)
async with never_refused(garden):
    async with never_refused(garden, old.certificate, old.token):
        ...  # start, until `is_prepared`
        await both_are_accepted(garden, old)
    ...  # complete, until `is_completed`
await only_new_ones_are_accepted(garden, old)
```
"""

import base64
from typing import Final, NamedTuple, Self

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SECRET
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.virtual_access import KUBECONFIG
from pergola.garden.landscape.encryption_at_rest import POPULATED
from pergola.kube.client import Client
from pergola.kube.credentials import Credentials
from pergola.operator.rotation.encryption.marks import LABELED
from pergola.operator.rotation.encryption.rewrite import KEY_NAME
from pergola.operator.virtual_cluster import VirtualCluster
from tests.support.etcd_content import encrypting_keys
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import MANAGED
from tests.support.virtual_credentials import (
    LivingGarden,
    access_config,
    client_certificate,
    current_secrets,
    is_refused,
)

_AUTHORITIES: Final = ("ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy")
_KEYS: Final = ("service-account-key", "gardener-apiserver-workload-identity-signing-key")
_ENCRYPTION_KEYS: Final = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
)
ROTATED: Final = (*_AUTHORITIES, "ca-gardener", *_KEYS, *_ENCRYPTION_KEYS)
"""The credentials of which a rotation keeps the old ones until it is completed."""
_PHASED: Final = ("certificateAuthorities", "serviceAccountKey", "workloadIdentityKey")
_CONTENT: Final[tuple[JsonObject, ...]] = (
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "garden"}},
    {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ControllerDeployment",
        "metadata": {"name": "a"},
        "type": "custom",
        "providerConfig": {"some": "config"},
    },
)


class OldCredentials(NamedTuple):
    """Credentials from before a rotation.

    Attributes:
        certificate: An administrator's.
        token: Of a ServiceAccount.
        secrets: By config name, as `current_secrets` returns them.
    """

    certificate: Credentials
    token: Credentials
    secrets: dict[str, JsonObject]

    @classmethod
    async def of(cls, garden: LivingGarden) -> Self:
        """Take the credentials of now; both API servers get something to encrypt with them."""
        async with VirtualCluster(garden.client, reach=garden.reach) as access:
            virtual = await access.client()
            for obj in _CONTENT:
                await virtual.create(obj)
        secrets = await current_secrets(garden.client)
        assert await encrypting_keys(garden) == _key_names(secrets)
        certificate = await client_certificate(garden.client)
        return cls(certificate, await _token(garden.client), secrets)


def is_prepared(garden: JsonObject) -> bool:
    """Return whether all are prepared; the key of etcd completes by itself with 1.34 and later."""
    found = _phases(garden)
    return (
        all(found.get(name) == "Prepared" for name in _PHASED)
        and found["etcdEncryptionKey"] == "Completed"
        and has_succeeded(garden)
    )


def is_completed(garden: JsonObject) -> bool:
    """Return whether all rotations are completed."""
    found = _phases(garden)
    return all(found.get(name) == "Completed" for name in _PHASED) and has_succeeded(garden)


def _phases(garden: JsonObject) -> dict[str, str]:
    return {name: each.get("phase", "") for name, each in _rotation(garden).items()}


def _rotation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "credentials", "rotation")


async def both_are_accepted(garden: LivingGarden, old: OldCredentials) -> None:
    """Old and new credentials are valid; etcd has the new key only, and all know the authority."""
    current = await current_secrets(garden.client)
    for name in (*ROTATED, "observability-ingress"):
        assert current[name]["data"] != old.secrets[name]["data"], name
    assert not await is_refused(garden, old.certificate)
    assert not await is_refused(garden, old.token)
    await _new_ones_are_accepted(garden)
    token = await _token(garden.client)
    assert await token.headers() != await old.token.headers()
    assert await encrypting_keys(garden) == _key_names(current)
    await _all_namespaces_publish(garden, current["ca"])


async def _all_namespaces_publish(garden: LivingGarden, authority: JsonObject) -> None:
    """A rotation is not prepared before kube-controller-manager has written it everywhere."""
    certificate = base64.b64decode(authority["data"]["ca.crt"]).decode().strip()
    async with VirtualCluster(garden.client, reach=garden.reach) as access:
        virtual = await access.client()
        found = await virtual.list(CONFIG_MAP, fields="metadata.name=kube-root-ca.crt")
    assert found
    assert all(certificate in each["data"]["ca.crt"] for each in found)


async def only_new_ones_are_accepted(garden: LivingGarden, old: OldCredentials) -> None:
    """Old credentials are refused and gone, and so is all that the rotation has noted."""
    assert await is_refused(garden, old.certificate)
    assert await is_refused(garden, old.token)
    await _new_ones_are_accepted(garden)

    client = garden.client
    left = {name_of(secret) for secret in await client.list(SECRET, "garden", labels=MANAGED)}
    assert not left & {name_of(old.secrets[name]) for name in ROTATED}
    # Pods may still mount the kubeconfig before the last one, which has the new authority, too.
    assert len([name for name in left if name.startswith(KUBECONFIG)]) == 2
    assert await encrypting_keys(garden) == _key_names(await current_secrets(client))
    async with VirtualCluster(client, reach=garden.reach) as access:
        assert await (await access.client()).list(SECRET, labels=KEY_NAME) == []
    server = await client.get(DEPLOYMENT, Key("garden", "virtual-garden-kube-apiserver"))
    assert not annotations_of(server).keys() & {POPULATED, LABELED}
    [live] = await client.list(GARDEN)
    assert _rotation(live)["observability"]["lastCompletionTime"]


async def _new_ones_are_accepted(garden: LivingGarden) -> None:
    assert not await is_refused(garden, await client_certificate(garden.client))
    assert not await is_refused(garden, await _token(garden.client))


async def _token(client: Client) -> Credentials:
    return (await access_config(client)).credentials


def _key_names(secrets: dict[str, JsonObject]) -> set[str]:
    """Return the names of the encryption keys, as they are in etcd."""
    return {base64.b64decode(secrets[name]["data"]["key"]).decode() for name in _ENCRYPTION_KEYS}
