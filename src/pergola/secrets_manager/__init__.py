"""Credentials kept as immutable Secrets: generate, renew, rotate, adopt, clean up (spec 20 §10).

Not for: cryptography, which is in `pergola.pki`, or deciding when a user's rotation starts, which
is up to the caller.
"""

from pergola.secrets_manager.configs import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    ClientKubeconfig,
    EncryptionKey,
    Kubeconfig,
    RsaKey,
    SecretConfig,
    StaticToken,
    StaticTokens,
)
from pergola.secrets_manager.durable import durable, observe_managed
from pergola.secrets_manager.errors import SecretsManagerError
from pergola.secrets_manager.loss import Irreplaceable, SecretLost
from pergola.secrets_manager.managed import ManagedSecret
from pergola.secrets_manager.manager import Generated, SecretsManager
from pergola.secrets_manager.options import Options, Rotate, SigningCA, Use

__all__ = [
    "BasicAuth",
    "Certificate",
    "CertificateAuthority",
    "ClientKubeconfig",
    "EncryptionKey",
    "Generated",
    "Irreplaceable",
    "Kubeconfig",
    "ManagedSecret",
    "Options",
    "Rotate",
    "RsaKey",
    "SecretConfig",
    "SecretLost",
    "SecretsManager",
    "SecretsManagerError",
    "SigningCA",
    "StaticToken",
    "StaticTokens",
    "Use",
    "durable",
    "observe_managed",
]
