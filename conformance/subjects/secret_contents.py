"""The content of the Secrets of the secrets manager, without random values and hashes."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pergola.api.objects import JsonObject, JsonValue, labels_of, name_of
from pergola.kube.yaml import parse
from pergola.pki import (
    hosts_of,
    public_pem,
    read_certificate,
    read_private_key,
    signed_by,
)
from pergola.secrets_manager import ManagedSecret
from pergola.secrets_manager.managed import (
    CA_CHECKSUM,
    CONFIG_CHECKSUM,
    NAME,
    data_checksum,
    decoded,
)

_HASHED: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{5})?$")
"""The part of a name that depends on the implementation."""
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----\n?", re.DOTALL)


class Seen:
    """Names random values and hashes after the step in which they appeared first."""

    def __init__(self) -> None:
        self._objects: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._checksums: dict[str, str] = {}
        self._configs: dict[tuple[str, ...], str] = {}
        self._authorities: dict[str, x509.Certificate] = {}
        self._keys: dict[bytes, str] = {}

    def scan(self, secrets: Iterable[JsonObject], step: str) -> None:
        """Name what a step made."""
        for secret in sorted(secrets, key=_config):
            if not labels_of(secret).get(CONFIG_CHECKSUM):
                continue  # others made it
            name, data = f"{step} {_config(secret)}", decoded(secret)
            self._objects.setdefault(name_of(secret), name)
            self._configs.setdefault(_checksums(secret), name)
            if self._data.setdefault(_hash(data), name) == name:
                self._checksums[data_checksum(data)] = name
                self._learn(data, name)

    def secrets(self, secrets: Iterable[JsonObject]) -> JsonObject:
        """Describe Secrets by name."""
        return {self.named(name_of(secret)): self._described(secret) for secret in secrets}

    def named(self, name: str) -> str:
        """Return the name that stands for the name of an object."""
        return self._objects.get(name, name)

    def _learn(self, data: Mapping[str, bytes], name: str) -> None:
        if "ca.crt" in data and "ca.key" in data:
            self._authorities[name] = read_certificate(data["ca.crt"])
        if "id_rsa" in data:
            private = data["id_rsa"]
            public = public_pem(read_private_key(private).public_key())
            self._keys |= {private.strip(): name, public.strip(): name}

    def _described(self, secret: JsonObject) -> JsonObject:
        labels, data = dict(labels_of(secret)), decoded(secret)
        if CONFIG_CHECKSUM in labels:
            labels[CONFIG_CHECKSUM] = self._configs.get(_checksums(secret), "")
        if CA_CHECKSUM in labels:
            labels[CA_CHECKSUM] = self._checksums.get(labels[CA_CHECKSUM], labels[CA_CHECKSUM])
        return {
            "name": _shape(name_of(secret)),
            "labels": labels,
            "type": secret.get("type", ""),
            "immutable": secret.get("immutable") is True,
            "created": int(ManagedSecret(secret, {}).created.timestamp()),
            "from": self._data.get(_hash(data), ""),
            "data": {key: self._meaning(key, value) for key, value in data.items()},
        }

    def _meaning(self, key: str, value: bytes) -> JsonValue:
        match key:
            case "password" | "secret":
                return len(value)
            case "auth":
                return value.decode().split(":")[0]
            case "static_tokens.csv":
                return _users(value.decode())
            case "kubeconfig":
                return self._config(parse(value.decode()))
        blocks = [*_BLOCK.finditer(value)]
        if not blocks:
            return value.decode()
        return [self._block(key, each[1], each[0]) for each in blocks]

    def _config(self, value: JsonValue) -> JsonValue:
        """Describe the embedded files of a kubeconfig."""
        if isinstance(value, list):
            return [self._config(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self._meaning(key, base64.b64decode(str(each)))
            if key.endswith("-data")
            else self._config(each)
            for key, each in value.items()
        }

    def _block(self, key: str, kind: bytes, pem: bytes) -> JsonValue:
        if key in ("id_rsa", "bundle.key"):
            return f"key {self._keys[pem.strip()]}"
        if kind != b"CERTIFICATE":
            return "a private key"
        certificate = read_certificate(pem)
        details = _details(certificate)
        for name, authority in self._authorities.items():
            if signed_by(certificate, authority):
                details["issuer"] = name
        for name, authority in self._authorities.items():
            if certificate == authority:
                return {"authority": name, "details": details}
        return details


def _details(certificate: x509.Certificate) -> JsonObject:
    subject = certificate.subject
    (name,) = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    uses = _uses(certificate)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    return {
        "commonName": _shape(str(name.value)),
        "organizations": [str(each.value) for each in organizations],
        "hosts": sorted(hosts_of(certificate)),
        "server": ExtendedKeyUsageOID.SERVER_AUTH in uses,
        "client": ExtendedKeyUsageOID.CLIENT_AUTH in uses,
        "authority": constraints.value.ca,
        "from": int(certificate.not_valid_before_utc.timestamp()),
        "until": int(certificate.not_valid_after_utc.timestamp()),
    }


def _uses(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    try:
        return {*certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value}
    except x509.ExtensionNotFound:
        return set()


def _users(text: str) -> list[JsonValue]:
    """Return the lines of a file with tokens in order, with the length of each token."""
    found: list[JsonValue] = []
    for line in text.strip().splitlines():
        token, _, user = line.partition(",")
        found.append(f"{user.rstrip(',')},{len(token)}")
    return sorted(found, key=str)


def _config(secret: JsonObject) -> str:
    return labels_of(secret).get(NAME, "")


def _checksums(secret: JsonObject) -> tuple[str, ...]:
    """Return what the first hash in a name depends on: an authority may be a part of the config."""
    labels = labels_of(secret)
    return tuple(labels.get(name, "") for name in (NAME, CONFIG_CHECKSUM, CA_CHECKSUM))


def _shape(name: str) -> str:
    return _HASHED.sub(r"-#\1", name)


def _hash(data: Mapping[str, bytes]) -> str:
    text = json.dumps({key: value.hex() for key, value in data.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
