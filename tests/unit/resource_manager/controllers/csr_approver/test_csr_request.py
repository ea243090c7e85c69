"""The contents of CertificateSigningRequests, and requests that are refused as ambiguous."""

import base64
from contextlib import suppress
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.csr_approver.request import UndecodableRequest, decode
from tests.support.certificate_requests import new_key, request_pem, signing_request

KEY = new_key()
SIGNER = "kubernetes.io/kubelet-serving"
EXTENSION_REQUEST = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
OTHER_EXTENSION_REQUEST = x509.ObjectIdentifier("1.3.6.1.4.1.311.2.1.14")
SUBJECT_ALTERNATIVE_NAME = x509.ObjectIdentifier("2.5.29.17")
PEM = request_pem(KEY, "system:node:foo", ["system:nodes"], ["foo"], ["10.0.0.1"])


def csr(pem: bytes, username: str = "system:node:foo") -> JsonObject:
    obj = signing_request("demo", SIGNER, pem)
    obj["spec"]["username"] = username
    return obj


def pem_of(der: bytes) -> bytes:
    text = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + text + b"-----END CERTIFICATE REQUEST-----\n"


def tlv(tag: int, *parts: bytes) -> bytes:
    """Return a DER value: tag, length, content."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def oid(identifier: x509.ObjectIdentifier) -> bytes:
    first, second, *rest = map(int, identifier.dotted_string.split("."))
    encoded = bytes([first * 40 + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | (number & 0x7F))
        encoded += bytes(reversed(digits))
    return tlv(0x06, encoded)


def names(dns: str) -> bytes:
    """Return the extension with one DNS name."""
    return tlv(0x30, oid(SUBJECT_ALTERNATIVE_NAME), tlv(0x04, tlv(0x30, tlv(0x82, dns.encode()))))


def extensions(kind: x509.ObjectIdentifier, *found: bytes) -> bytes:
    """Return an attribute that requests extensions."""
    return tlv(0x30, oid(kind), tlv(0x31, tlv(0x30, *found)))


SUBJECT = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "system:node:foo")]).public_bytes()


def with_attributes(*attributes: bytes, subject: bytes = SUBJECT) -> bytes:
    """Return a request with handmade attributes and an invalid signature."""
    public = KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    info = tlv(0x30, tlv(0x02, b"\0"), subject, public, tlv(0xA0, *attributes))
    algorithm = tlv(0x30, oid(x509.ObjectIdentifier("1.2.840.10045.4.3.2")))
    return pem_of(tlv(0x30, info, algorithm, tlv(0x03, b"\0nothing")))


def test_every_field_is_decoded() -> None:
    pem = request_pem(
        KEY,
        "system:node:foo",
        ["system:nodes", "others"],
        ["foo", "foo.alias", "foo"],
        ["10.0.0.1", "2080:1000:1000:8ff0::"],
    )
    request = decode(csr(pem, "system:node:bar"))
    assert request.username == "system:node:bar"
    assert request.common_name == "system:node:foo"
    assert request.organizations == ("system:nodes", "others")
    assert request.dns_names == {"foo", "foo.alias"}
    assert request.ip_addresses == {ip_address("10.0.0.1"), ip_address("2080:1000:1000:8ff0::")}


def test_a_request_without_a_subject_and_names_decodes_as_empty() -> None:
    request = decode(csr(with_attributes()))
    assert request.dns_names == request.ip_addresses == frozenset()
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    anonymous = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    assert decode(csr(anonymous)).common_name == ""
    assert decode(csr(anonymous)).organizations == ()


def test_the_last_of_several_common_names_counts_like_for_signers() -> None:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in ("first", "last")]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    assert decode(csr(pem)).common_name == "last"


def test_an_ipv4_address_mapped_into_ipv6_counts_as_ipv4() -> None:
    pem = request_pem(KEY, "system:node:foo", ip_addresses=["::ffff:10.0.0.1"])
    assert decode(csr(pem)).ip_addresses == {ip_address("10.0.0.1")}


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"nothing",
        PEM.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"),
        PEM.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"),
        PEM.replace(b"REQUEST-----\n", b"REQUEST-----\nName: value\n\n", 1),
        pem_of(b"\x30\x00"),
        pem_of(b"no DER"),
    ],
)
def test_an_undecodable_request_is_reported(pem: bytes) -> None:
    with pytest.raises(UndecodableRequest):
        decode(csr(pem))


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("more", ["=", "==", "====", "A=", "!"])
def test_base64_with_excess_padding_is_refused(length: int, more: str) -> None:
    texts = []
    for pem in (PEM + b"\n" * count for count in range(3)):
        obj = csr(pem)
        decode(obj)
        texts.append(obj["spec"]["request"])
    (text,) = (text for text in texts if text.count("=") == length)
    with pytest.raises(UndecodableRequest, match="base64"):
        decode({"spec": {"request": text + more}})


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("more", [b"=", b"==", b"===="])
def test_a_block_with_excess_padding_is_refused(length: int, more: bytes) -> None:
    # A real signature would have a random length; here, the name determines the padding.
    requests = (with_attributes(extensions(EXTENSION_REQUEST, names("a" * n))) for n in range(1, 4))
    (pem,) = (pem for pem in requests if pem.count(b"=") == length)
    assert decode(csr(pem)).dns_names
    with pytest.raises(UndecodableRequest, match="base64"):
        decode(csr(pem.replace(b"\n-----END", more + b"\n-----END")))


def test_a_missing_request_or_invalid_base64_is_reported() -> None:
    obj = csr(PEM)
    for value in (None, 7, "&"):
        obj["spec"]["request"] = value
        with pytest.raises(UndecodableRequest):
            decode(obj)


@pytest.mark.parametrize("pem", [PEM, b"\n" + PEM + b"\n\n", PEM.replace(b"\n", b"\r\n")])
def test_whitespace_around_and_in_the_block_is_ignored(pem: bytes) -> None:
    assert decode(csr(pem)) == decode(csr(PEM))


# Requests that parsers read differently


@pytest.mark.parametrize(
    "pem",
    [
        # A marker within a line is a block for some parsers, and text for others.
        b"x " + PEM + request_pem(KEY, "system:node:other"),
        request_pem(KEY, "system:node:other") + PEM,
        PEM + b"-----BEGIN CERTIFICATE REQUEST-----\nbroken\n-----END CERTIFICATE REQUEST-----\n",
        b"some text\n" + PEM,
        PEM + b"some text\n",
    ],
)
def test_anything_but_one_block_is_refused(pem: bytes) -> None:
    with pytest.raises(UndecodableRequest, match="exactly one PEM block"):
        decode(csr(pem))


def test_extensions_of_a_handmade_request_are_decoded() -> None:
    pem = with_attributes(extensions(EXTENSION_REQUEST, names("foo")))
    assert decode(csr(pem)).dns_names == {"foo"}


@pytest.mark.parametrize(
    "attributes",
    [
        # We would check the first one, but the signer would use the second.
        [
            extensions(OTHER_EXTENSION_REQUEST, names("foo")),
            extensions(EXTENSION_REQUEST, names("evil")),
        ],
        [
            extensions(EXTENSION_REQUEST, names("foo")),
            extensions(EXTENSION_REQUEST, names("evil")),
        ],
        [extensions(OTHER_EXTENSION_REQUEST, names("foo"))],
        [extensions(EXTENSION_REQUEST, names("foo"), names("evil"))],
    ],
)
def test_extensions_in_several_places_are_refused(attributes: list[bytes]) -> None:
    with pytest.raises(UndecodableRequest):
        decode(csr(with_attributes(*attributes)))


def test_a_network_is_not_an_address() -> None:
    network = tlv(0x30, tlv(0x87, bytes([10, 0, 0, 0, 255, 0, 0, 0])))
    extension = tlv(0x30, oid(SUBJECT_ALTERNATIVE_NAME), tlv(0x04, network))
    with pytest.raises(UndecodableRequest):
        decode(csr(with_attributes(extensions(EXTENSION_REQUEST, extension))))


def test_odd_subject_attributes_raise_no_warning() -> None:
    long = "system:node:" + "a" * 100  # the standard allows 64 at most, which no parser enforces
    attribute = tlv(0x30, oid(NameOID.COMMON_NAME), tlv(0x0C, long.encode()))
    pem = with_attributes(subject=tlv(0x30, tlv(0x31, attribute)))
    assert decode(csr(pem)).common_name == long


@given(position=st.integers(0, len(PEM) - 1), byte=st.binary(min_size=1, max_size=1))
def test_a_corrupt_request_is_decoded_or_refused(position: int, byte: bytes) -> None:
    damaged = PEM[:position] + byte + PEM[position + 1 :]
    with suppress(UndecodableRequest):
        assert decode(csr(damaged)).username == "system:node:foo"
