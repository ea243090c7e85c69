"""The content of a CertificateSigningRequest, decoded so that no signer could read it differently.

kube-controller-manager signs approved requests, and has its own parser. Anything that two parsers
might interpret differently is refused: text around the PEM block, several blocks, or several lists
of requested extensions.
"""

import binascii
import re
import warnings
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from pergola.api.ip_ranges import Address, unmapped
from pergola.api.objects import JsonObject, map_at

_PEM: Final = re.compile(
    rb"\s*-----BEGIN CERTIFICATE REQUEST-----\s([A-Za-z0-9+/=\s]+)"
    rb"-----END CERTIFICATE REQUEST-----\s*"
)
_EXTENSION_REQUEST: Final = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
# An older equivalent, which Python's libraries accept and Go's do not.
_OTHER_EXTENSION_REQUEST: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.2.1.14")


class UndecodableRequest(ValueError):
    """`spec.request` is not exactly one PKCS#10 request in PEM; the text says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """The facts about a CertificateSigningRequest on which its approval depends.

    Attributes:
        username: The creator, as authenticated by the API server.
        common_name: From the subject; the last of several, which signers in Go use.
        dns_names: All subject alternative names of this type.
        ip_addresses: All IP addresses among them; IPv4 addresses mapped into IPv6 count as IPv4.
    """

    username: str
    common_name: str
    organizations: tuple[str, ...]
    dns_names: frozenset[str]
    ip_addresses: frozenset[Address]


def decode(csr: JsonObject) -> Request:
    """Decode a CertificateSigningRequest as the API server returned it.

    Raises:
        UndecodableRequest: The PKCS#10 request in it is malformed or ambiguous.
    """
    spec = map_at(csr, "spec")
    try:
        request = x509.load_der_x509_csr(_der(spec.get("request")))
        _check_attributes(request)
        common_names = _subject(request, NameOID.COMMON_NAME)
        names = _alternative_names(request)
        addresses = names.get_values_for_type(x509.IPAddress)
        return Request(
            username=spec.get("username") or "",
            common_name=common_names[-1] if common_names else "",
            organizations=tuple(_subject(request, NameOID.ORGANIZATION_NAME)),
            dns_names=frozenset(names.get_values_for_type(x509.DNSName)),
            ip_addresses=frozenset(map(_address, addresses)),
        )
    except UndecodableRequest:
        raise
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise UndecodableRequest(f"not a valid PKCS#10 request: {error}") from error


def _der(request: object) -> bytes:
    try:
        pem = _unbase64(request.encode() if isinstance(request, str) else b"")
        block = _PEM.fullmatch(pem)
        if block is None:
            raise UndecodableRequest("not exactly one PEM block of type CERTIFICATE REQUEST")
        return _unbase64(b"".join(block[1].split()))
    except binascii.Error as error:
        raise UndecodableRequest("the base64 text is malformed") from error


def _unbase64(text: bytes) -> bytes:
    """Decode base64, accepting only the canonical encoding.

    Python accepts excess padding even in strict mode; signers in Go refuse it.
    """
    found = binascii.a2b_base64(text)
    if binascii.b2a_base64(found, newline=False) != text:
        raise binascii.Error("the base64 text is not canonical")
    return found


def _check_attributes(request: x509.CertificateSigningRequest) -> None:
    kinds = [attribute.oid for attribute in request.attributes]
    if _OTHER_EXTENSION_REQUEST in kinds or kinds.count(_EXTENSION_REQUEST) > 1:
        raise UndecodableRequest("the requested extensions must be in one PKCS#9 attribute")


def _subject(request: x509.CertificateSigningRequest, oid: x509.ObjectIdentifier) -> list[str]:
    with warnings.catch_warnings():
        # The library warns about attribute lengths, which are irrelevant here.
        warnings.simplefilter("ignore")
        found = [attribute.value for attribute in request.subject.get_attributes_for_oid(oid)]
    return [value for value in found if isinstance(value, str)]


def _alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def _address(value: object) -> Address:
    if not isinstance(value, IPv4Address | IPv6Address):
        raise UndecodableRequest("a subject alternative name is a network, not an IP address")
    return unmapped(value)
