"""Credentials as Secrets: `pergola.secrets_manager`."""

from datetime import timedelta

from pergola.kube import Client
from pergola.pki import KeyAlgorithm
from pergola.runtime import SystemClock
from pergola.secrets_manager import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    ClientKubeconfig,
    EncryptionKey,
    Generated,
    Irreplaceable,
    Kubeconfig,
    ManagedSecret,
    Options,
    Rotate,
    RsaKey,
    SecretsManager,
    SigningCA,
    StaticToken,
    StaticTokens,
    durable,
    observe_managed,
)

EC = KeyAlgorithm.EC_P256


async def credentials(client: Client, namespace: str) -> None:
    """Generate credentials; the next run finds them, and deletes any that are not requested."""
    manager = await SecretsManager.open(client, namespace, "example", clock=SystemClock())
    ca = await manager.generate(CertificateAuthority("ca", EC), Options(rotate=Rotate.KEEP_OLD))
    server = Certificate(
        name="server", common_name="web", hosts=("web",), for_server=True, algorithm=EC
    )
    signed = Options(signed_by=SigningCA("ca"), validity=timedelta(days=30))
    found = await manager.generate(server, signed)
    assert isinstance(found, ManagedSecret)
    assert {"tls.crt", "tls.key"} <= {*found.data}
    both = manager.generated["ca"]
    assert isinstance(both, Generated)
    assert both.current == ca
    access = ClientKubeconfig(
        name="client",
        user="ann",
        groups=(),
        server="https://web",
        server_ca=ca.data["ca.crt"],
        context="web",
        algorithm=EC,
    )
    await manager.generate(access, Options(signed_by=SigningCA("ca")))
    await manager.generate(BasicAuth("ingress"), Options())
    await manager.generate(StaticTokens("tokens", (StaticToken("health-check"),)), Options())
    await manager.generate(EncryptionKey("etcd"), Options(persist=True))
    await manager.cleanup()
    kept = await observe_managed(client, namespace, "example")
    assert {each.name for each in kept} >= {"ca", "server", "client", "ingress", "tokens", "etcd"}
    assert "ca" in [each.name for each in durable(kept)]


def irreplaceable() -> None:
    """Say what would be lost with a Secret, so that it is never generated a second time."""
    key = Irreplaceable(
        use="decrypts the data of etcd",
        remedy="restore the Secret",
        annotation="example.com/give-up",
    )
    options = Options(irreplaceable=key)
    assert options.irreplaceable is key
    assert RsaKey("service-account-key", KeyAlgorithm.RSA_3072).bundle_key == "bundle.key"
    assert Kubeconfig.of("garden", {"kind": "Config"}).name == "garden"
