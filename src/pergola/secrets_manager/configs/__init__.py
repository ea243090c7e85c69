"""The credentials that the secrets manager can generate."""

from pergola.secrets_manager.configs.certificates import Certificate, CertificateAuthority
from pergola.secrets_manager.configs.config import Inputs, SecretConfig, SecretData, canonical
from pergola.secrets_manager.configs.keys import EncryptionKey, RsaKey
from pergola.secrets_manager.configs.kubeconfigs import ClientKubeconfig, Kubeconfig
from pergola.secrets_manager.configs.passwords import BasicAuth, StaticToken, StaticTokens

__all__ = [
    "BasicAuth",
    "Certificate",
    "CertificateAuthority",
    "ClientKubeconfig",
    "EncryptionKey",
    "Inputs",
    "Kubeconfig",
    "RsaKey",
    "SecretConfig",
    "SecretData",
    "StaticToken",
    "StaticTokens",
    "canonical",
]
