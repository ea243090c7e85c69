"""Kubeconfigs, with a client certificate or without credentials."""

from collections.abc import Mapping
from dataclasses import dataclass

from pergola.api.objects import JsonObject
from pergola.kube.yaml_writer import dump
from pergola.pki import Authority, ClientCertificate, KeyAlgorithm, Template, kubeconfig
from pergola.secrets_manager.configs.certificates import BACKDATED
from pergola.secrets_manager.configs.config import Inputs, SecretConfig, SecretData
from pergola.secrets_manager.errors import SecretsManagerError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKubeconfig(SecretConfig):
    """A client certificate and a kubeconfig that uses it.

    Attributes:
        server: URL of the API server.
        server_ca: PEM bundle of authorities that the client trusts.
    """

    name: str
    user: str
    groups: tuple[str, ...]
    server: str
    server_ca: bytes
    context: str
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_3072

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return that a short-lived kubeconfig is never reused."""
        return "it is always regenerated"

    def certificate(self, data: Mapping[str, bytes]) -> bytes:
        """Return the client certificate."""
        return data[f"{self.name}.crt"]

    is_signed = True
    is_replaceable = True

    def fingerprint(self) -> JsonObject:
        """Return the user, its groups, and the address of its API server."""
        return {
            "kind": "ClientKubeconfig",
            "name": self.name,
            "user": self.user,
            "groups": list(self.groups),
            "server": self.server,
            "serverCA": self.server_ca.decode(),
            "context": self.context,
        }

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `ca.crt`, `<name>.crt`, `<name>.key` and `kubeconfig`."""
        if inputs.signer is None:
            raise SecretsManagerError(f"certificate {self.name} needs an authority to sign it")
        template = Template(
            common_name=self.user,
            organizations=self.groups,
            for_client=True,
            lifetime=inputs.lifetime,
            backdated=BACKDATED,
            may_outlive=True,
        )
        pair = inputs.signer.issue(template, inputs.now, self.algorithm)
        config = kubeconfig(self.context, self.server, self.server_ca, ClientCertificate(pair))
        return {
            "ca.crt": inputs.signer.pair.public,
            f"{self.name}.crt": pair.public,
            f"{self.name}.key": pair.private,
            "kubeconfig": dump(config).encode(),
        }


@dataclass(frozen=True, slots=True)
class Kubeconfig(SecretConfig):
    """A kubeconfig without embedded credentials, such as one that reads a token file."""

    name: str
    content: bytes

    is_replaceable = True

    @classmethod
    def of(cls, name: str, config: JsonObject) -> "Kubeconfig":
        """Return the config for a kubeconfig."""
        return cls(name, dump(config).encode())

    def fingerprint(self) -> JsonObject:
        """Return the content."""
        return {"kind": "Kubeconfig", "name": self.name, "content": self.content.decode()}

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return whether the content differs."""
        return "" if data.get("kubeconfig") == self.content else "its content differs"

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `kubeconfig`."""
        return {"kubeconfig": self.content}
