"""CertificateSigningRequests with real keys, as kubelets and agents make them."""

import base64
from collections.abc import Sequence
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pergola.api.objects import JsonObject


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a fresh private key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM, unencrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def request_pem(
    key: ec.EllipticCurvePrivateKey,
    common_name: str,
    organizations: Sequence[str] = (),
    dns_names: Sequence[str] = (),
    ip_addresses: Sequence[str] = (),
) -> bytes:
    """Return a PKCS#10 request in PEM, signed by its key."""
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
    names += [x509.IPAddress(ip_address(address)) for address in ip_addresses]
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def signing_request(name: str, signer: str, pem: bytes) -> JsonObject:
    """Return a CertificateSigningRequest for a signer, with the usages that the signer allows."""
    usage = "server auth" if signer == "kubernetes.io/kubelet-serving" else "client auth"
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": signer,
            "usages": ["digital signature", usage],
        },
    }
