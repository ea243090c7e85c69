"""The credentials of the whole catalog: which are adopted, and which outlive their cluster.

Spec 20 §10.5.
"""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import Key, labels_of
from pergola.garden.components.catalog import CATALOG
from pergola.garden.landscape.credentials import Credentials
from pergola.kube.client import Client
from pergola.operator.run.build import IDENTITY, Built
from pergola.pki import Authority, KeyAlgorithm, generate_key, private_pem
from pergola.runtime.clock import FakeClock
from pergola.secrets_manager import (
    Certificate,
    CertificateAuthority,
    RsaKey,
    SecretConfig,
    SecretsManager,
    durable,
    observe_managed,
)
from pergola.secrets_manager.configs import Inputs, SecretData
from tests.support.garden import landscape

NOW: Final = datetime.now(UTC).replace(microsecond=0)
LABEL: Final = "secrets-manager-use-data-for-name"
ADOPTED_AUTHORITIES: Final = ("ca", "ca-client", "ca-front-proxy")
ENCRYPTION_KEYS: Final = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
)
ACCOUNT_KEY: Final = "service-account-key"
OTHERS: Final = {
    "ca-etcd",
    "ca-etcd-peer",
    "ca-garden-runtime",
    "ca-gardener",
    "ca-virtual-garden-istio-basic-auth-server",
    "gardener-apiserver-workload-identity-signing-key",
    "kube-apiserver-static-token",
    "observability-ingress",
}


def existing() -> dict[str, SecretData]:
    """Return the data of another landscape, by names of credentials."""
    found: dict[str, SecretData] = {}
    for name in ADOPTED_AUTHORITIES:
        pair = Authority.create(f"old {name}", NOW, timedelta(days=3650)).pair
        found[name] = {"ca.crt": pair.public, "ca.key": pair.private}
    for name in ENCRYPTION_KEYS:
        found[name] = {"provider": b"", "key": b"key1", "secret": b"x" * 32, "encoding": b"none"}
    found[ACCOUNT_KEY] = {"id_rsa": _small_key()}
    return found


def _small_key() -> bytes:
    return private_pem(generate_key(KeyAlgorithm.EC_P256))


def cheap(config: SecretConfig, inputs: Inputs) -> SecretData:
    """Return data with small keys, which take little CPU time."""
    if isinstance(config, RsaKey):
        return {"id_rsa": _small_key()}
    if isinstance(config, CertificateAuthority | Certificate):
        config = replace(config, algorithm=KeyAlgorithm.EC_P256)
    return config.generate(inputs)


async def test_the_credentials_of_an_existing_landscape_are_adopted_and_durable(
    cluster_client: Client, namespace: str
) -> None:
    client, old = cluster_client, existing()
    for name, data in old.items():
        await client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": f"old-{name}",
                    "namespace": namespace,
                    "labels": {LABEL: name},
                },
                "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
            }
        )
    clock = FakeClock(NOW)
    secrets = await SecretsManager.open(client, namespace, IDENTITY, clock=clock, generate=cheap)

    site = landscape()
    built = Built(site, secrets)
    await built.generate_authorities()
    for component in CATALOG:
        if component.absent(site) is None:
            so_far = site.with_credentials(Credentials(dict(secrets.generated)))
            await built.generate(component.credentials(so_far))

    adopted = {name: secrets.current(name).data for name in old}
    assert adopted == old
    managed = await observe_managed(client, namespace, IDENTITY)
    assert {secret.name for secret in durable(managed)} == {*old} | OTHERS
    for name in old:  # the user's own Secrets are not changed
        secret = await client.get(SECRET, Key(namespace, f"old-{name}"))
        assert labels_of(secret) == {LABEL: name}
