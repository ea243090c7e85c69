"""Placeholders for data that only a cluster has, so that a Garden can be rendered without one.

No keys are generated and nothing is read: names, labels and data keys match real credentials,
values do not.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.controllers.references import Reference
from pergola.garden.components.authorities import authorities
from pergola.garden.components.component import Component
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential, Credentials
from pergola.operator.run.build import IDENTITY as OPERATOR
from pergola.operator.run.references import references_of
from pergola.secrets_manager import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    ClientKubeconfig,
    Generated,
    ManagedSecret,
    RsaKey,
    SecretConfig,
)
from pergola.secrets_manager.configs import Inputs, SecretData
from pergola.secrets_manager.managed import (
    BUNDLE_FOR,
    IDENTITY,
    MANAGED_BY,
    MANAGER,
    NAME,
    PERSIST,
    RENEW_AT,
    rendered,
)

CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----\nplaceholder\n-----END CERTIFICATE-----\n"
HASH: Final = "00000000"
"""The suffix of placeholder names, in place of the hash of real names."""

_PRIVATE_KEY: Final = b"-----BEGIN PRIVATE KEY-----\nplaceholder\n-----END PRIVATE KEY-----\n"
# Public keys are parsed during rendering, so this one is real; its private half is lost.
_PUBLIC_KEY: Final = b"""-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAlE6lNbHyPRCuYIy/aHkn
BDJhP0Ydqs2M55FoL246fq0vi7aJ+q8VyT5odul8Vpqm9OLoLtGcnu6iQS9OFkxz
PFpj2+BVaQyrF9ytrJMYCVTnuGYAOPKdzISj7E/IOOpnzq9YlE0N/k3ogFoNML2b
KsMf2eIZ6Cm82bCmioJFvzXCgiLwiVR/KUkm4m9pyaSoWRnD84f97EgfmPh0lsJl
KgJcHkSepaLXxfURZn0S7AoUP211PthfIMDO3dh6FpfzbdNGJ8U1vXS3g+t+8GGi
oZXHuiWsVKXB8Oeg5pv7j25GAapJ6iPwewOhLV5Cejr9OQod1Cexn1rw5ud18NmF
uQIDAQAB
-----END PUBLIC KEY-----
"""
_TEXT: Final = b"placeholder"
_EMPTY_MAP: Final = b"{}\n"
_INPUTS: Final = Inputs(
    object_name="placeholder",
    now=datetime(2000, 1, 1, tzinfo=UTC),
    lifetime=timedelta(days=1),
    random_bytes=bytes,
)
_REFERENCED_KEYS: Final = (
    "assets.yaml",
    "ca.crt",
    "config.yaml",
    "frontend-config.yaml",
    "kubeconfig",
    "policy",
    "tls.crt",
    "tls.key",
)


def with_placeholders(landscape: Landscape, components: Iterable[Component]) -> Landscape:
    """Return the landscape with all credentials that its components need, and all references.

    Existing references are kept.
    """
    landscape = with_referenced(landscape)
    found = dict(_generated(authorities()))
    for component in components:
        landscape = landscape.with_credentials(Credentials(found))
        if component.absent(landscape) is None:
            found = {**found, **dict(_generated(component.credentials(landscape)))}
    return landscape.with_credentials(Credentials(found))


def with_referenced(landscape: Landscape) -> Landscape:
    """Return the landscape with placeholders for the references that it lacks."""
    missing = {
        (each.kind, each.key): placeholder(each.kind, each.key, _REFERENCED_KEYS)
        for each in missing_references(landscape)
    }
    return replace(landscape, references={**landscape.references, **missing})


def missing_references(landscape: Landscape) -> list[Reference]:
    """Return the objects that the Garden names but the landscape lacks."""
    known = landscape.references
    return [each for each in _references(landscape) if (each.kind, each.key) not in known]


def placeholder(kind: str, key: Key, fields: Iterable[str]) -> JsonObject:
    """Return a Secret or ConfigMap whose data has these keys."""
    values = {field: _value(field) for field in fields}
    if kind == "Secret":
        data = {field: base64.b64encode(value).decode() for field, value in values.items()}
    else:
        data = {field: value.decode() for field, value in values.items()}
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}


def _references(landscape: Landscape) -> list[Reference]:
    return references_of({"spec": landscape.garden.spec.to_json()})


def _value(field: str) -> bytes:
    if field.endswith((".crt", ".pem")):
        return CERTIFICATE
    return _PRIVATE_KEY if field.endswith(".key") else _EMPTY_MAP


def _generated(desired: Iterable[Credential]) -> Iterator[tuple[str, Generated]]:
    for credential in desired:
        config, options = credential.config, credential.options
        labels = dict(options.labels)
        if options.persist:
            labels[PERSIST] = "true"
        if options.renew_at_percent is not None:
            labels[RENEW_AT] = str(options.renew_at_percent)
        secret = _secret(config.name, labels, _data(config))
        bundle = None
        if config.bundle_key:
            content = CERTIFICATE if config.bundle_key.endswith(".crt") else _PUBLIC_KEY
            of = {BUNDLE_FOR: config.name}
            bundle = _secret(f"{config.name}-bundle", of, {config.bundle_key: content})
        yield config.name, Generated(secret, bundle=bundle)


def _secret(name: str, labels: Mapping[str, str], data: SecretData) -> ManagedSecret:
    labels = {**labels, NAME: name, MANAGED_BY: MANAGER, IDENTITY: OPERATOR}
    return ManagedSecret(rendered(Key(NAMESPACE, f"{name}-{HASH}"), labels, data), data)


def _data(config: SecretConfig) -> SecretData:
    """Return data with the keys that a config generates."""
    match config:
        case CertificateAuthority():
            return {"ca.crt": CERTIFICATE, "ca.key": _PRIVATE_KEY}
        case Certificate(publish_ca=publish_ca):
            pair = {"tls.crt": CERTIFICATE, "tls.key": _PRIVATE_KEY}
            return {**pair, "ca.crt": CERTIFICATE} if publish_ca else pair
        case ClientKubeconfig(name=name):
            pair = {f"{name}.crt": CERTIFICATE, f"{name}.key": _PRIVATE_KEY}
            return {**pair, "ca.crt": CERTIFICATE, "kubeconfig": _EMPTY_MAP}
        case RsaKey():
            return {"id_rsa": _PRIVATE_KEY}
        case BasicAuth(username=username):
            return {"username": username.encode(), "password": _TEXT, "auth": _TEXT}
    return config.generate(_INPUTS)
