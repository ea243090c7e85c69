"""Keys for signing tokens and encrypting stored objects."""

from collections.abc import Mapping
from dataclasses import dataclass

from pergola.api.objects import JsonObject
from pergola.pki import (
    Authority,
    CertificateError,
    KeyAlgorithm,
    generate_key,
    private_pem,
    public_pem,
    read_private_key,
)
from pergola.secrets_manager.configs.config import Inputs, SecretConfig, SecretData, missing_keys


@dataclass(frozen=True, slots=True)
class RsaKey(SecretConfig):
    """A key that signs tokens, with a bundle of the public keys that verify them."""

    name: str
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_4096

    bundle_key = "bundle.key"

    def fingerprint(self) -> JsonObject:
        """Return only the name."""
        return {"kind": "RsaKey", "name": self.name}

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `id_rsa`."""
        return {"id_rsa": private_pem(generate_key(self.algorithm))}

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return why the data is not a key."""
        if missing := missing_keys(data, "id_rsa"):
            return missing
        try:
            read_private_key(data["id_rsa"])
        except CertificateError as error:
            return str(error)
        return ""

    def bundled(self, data: Mapping[str, bytes]) -> bytes:
        """Return the public key, which is enough to verify tokens."""
        return public_pem(read_private_key(data["id_rsa"]).public_key())


@dataclass(frozen=True, slots=True)
class EncryptionKey(SecretConfig):
    """A key with which the API server encrypts stored objects.

    Attributes:
        provider: The provider in the encryption configuration; `aescbc` if empty.
        length: In bytes.
    """

    name: str
    provider: str = ""
    length: int = 32

    def fingerprint(self) -> JsonObject:
        """Return the provider and the length of the key."""
        return {
            "kind": "EncryptionKey",
            "name": self.name,
            "provider": self.provider,
            "length": self.length,
        }

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return which key is missing."""
        return missing_keys(data, "key", "secret")

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `provider`, `key` (its name), `secret` (raw bytes) and `encoding`."""
        return {
            "provider": self.provider.encode(),
            "key": f"key{int(inputs.now.timestamp())}".encode(),
            "secret": inputs.random_bytes(self.length),
            "encoding": b"none",
        }
