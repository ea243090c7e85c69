"""Authorities, and the certificates that they sign."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cryptography.x509.oid import NameOID

from pergola.api.objects import JsonObject
from pergola.pki import (
    Authority,
    CertificateError,
    KeyAlgorithm,
    Pair,
    Template,
    hosts_of,
    read_certificate,
    signed_by,
)
from pergola.secrets_manager.configs.config import Inputs, SecretConfig, SecretData, missing_keys
from pergola.secrets_manager.errors import SecretsManagerError

BACKDATED: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class CertificateAuthority(SecretConfig):
    """A self-signed authority, with a bundle for its clients."""

    name: str
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_3072

    bundle_key = "bundle.crt"

    def fingerprint(self) -> JsonObject:
        """Return only the name."""
        return {"kind": "CertificateAuthority", "name": self.name}

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `ca.crt` and `ca.key`."""
        pair = Authority.create(
            inputs.object_name,
            inputs.now,
            inputs.lifetime,
            algorithm=self.algorithm,
            backdated=BACKDATED,
        ).pair
        return {"ca.crt": pair.public, "ca.key": pair.private}

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return why the data is not an authority."""
        if missing := missing_keys(data, "ca.crt", "ca.key"):
            return missing
        try:
            Authority(Pair(data["ca.crt"], data["ca.key"]))
        except CertificateError as error:
            return str(error)
        return ""

    def certificate(self, data: Mapping[str, bytes]) -> bytes:
        """Return the authority's certificate."""
        return data["ca.crt"]

    def bundled(self, data: Mapping[str, bytes]) -> bytes:
        """Return the authority's certificate."""
        return data["ca.crt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(SecretConfig):
    """A certificate for a server, a client, or both.

    Attributes:
        publish_ca: Whether the data contains the signing authority's certificate.
    """

    name: str
    common_name: str
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    for_server: bool = False
    for_client: bool = False
    publish_ca: bool = True
    algorithm: KeyAlgorithm = KeyAlgorithm.RSA_3072

    is_signed = True
    is_replaceable = True

    def fingerprint(self) -> JsonObject:
        """Return the subject, the hosts, the purposes and the type of the key."""
        return {
            "kind": "Certificate",
            "name": self.name,
            "commonName": self.common_name,
            "organizations": list(self.organizations),
            "hosts": sorted(self.hosts),
            "server": self.for_server,
            "client": self.for_client,
            "ca": self.publish_ca,
            "key": self.algorithm.value,
        }

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `tls.crt`, `tls.key` and, if published, `ca.crt`."""
        signer, pair = self._issue(inputs)
        data = {"tls.crt": pair.public, "tls.key": pair.private}
        return data | ({"ca.crt": signer.pair.public} if self.publish_ca else {})

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return how the certificate differs from one that would be issued now."""
        keys = ("tls.crt", "tls.key", "ca.crt") if self.publish_ca else ("tls.crt", "tls.key")
        if missing := missing_keys(data, *keys):
            return missing
        try:
            certificate = read_certificate(data["tls.crt"])
        except CertificateError as error:
            return str(error)
        if signer is None or not signed_by(certificate, signer.certificate):
            return "it was signed by another authority"
        if hosts_of(certificate) != frozenset(self.hosts):
            return "it is for other hosts"
        name = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return "" if [n.value for n in name] == [self.common_name] else "it has another name"

    def certificate(self, data: Mapping[str, bytes]) -> bytes:
        """Return `tls.crt`."""
        return data["tls.crt"]

    def _issue(self, inputs: Inputs) -> tuple[Authority, Pair]:
        if inputs.signer is None:
            raise SecretsManagerError(f"certificate {self.name} needs an authority to sign it")
        template = Template(
            common_name=self.common_name,
            organizations=self.organizations,
            hosts=self.hosts,
            for_server=self.for_server,
            for_client=self.for_client,
            lifetime=inputs.lifetime,
            backdated=BACKDATED,
            may_outlive=True,
        )
        return inputs.signer, inputs.signer.issue(template, inputs.now, self.algorithm)
