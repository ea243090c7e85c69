"""Keys, certificates and authorities, and their rotation: EC and RSA, servers and clients.

Not for: storing credentials; `pergola.secrets_manager` keeps them in Secrets.
"""

from pergola.pki.authorities import BACKDATED, Authority, Template
from pergola.pki.certificates import (
    hosts_of,
    read_bundle,
    read_certificate,
    renewal_of,
    signed_by,
    write_bundle,
)
from pergola.pki.errors import CertificateError
from pergola.pki.jwks import ALGORITHM, key_set
from pergola.pki.keys import (
    KeyAlgorithm,
    Pair,
    PrivateKey,
    generate_key,
    key_pair,
    private_pem,
    public_pem,
    read_private_key,
)
from pergola.pki.kubeconfigs import ClientCertificate, Token, TokenFile, kubeconfig
from pergola.pki.rotation import SETTLE, Identity, Plan, advance, next_change

__all__ = [
    "ALGORITHM",
    "BACKDATED",
    "SETTLE",
    "Authority",
    "CertificateError",
    "ClientCertificate",
    "Identity",
    "KeyAlgorithm",
    "Pair",
    "Plan",
    "PrivateKey",
    "Template",
    "Token",
    "TokenFile",
    "advance",
    "generate_key",
    "hosts_of",
    "key_pair",
    "key_set",
    "kubeconfig",
    "next_change",
    "private_pem",
    "public_pem",
    "read_bundle",
    "read_certificate",
    "read_private_key",
    "renewal_of",
    "signed_by",
    "write_bundle",
]
