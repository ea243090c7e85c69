"""The certificates that gateways get from Secrets."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import Key
from pergola.pki import Authority, CertificateError
from pergola.sandbox.istiod.credentials import Credential, entries_of, read

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
AUTHORITY = Authority.create("test", NOW, DAY)
PAIR = AUTHORITY.issue_server("web", ["web.example.com"], NOW, DAY)
CA, CERTIFICATE, PRIVATE = (
    text.decode() for text in (AUTHORITY.pair.public, PAIR.public, PAIR.private)
)
WEB = Key("ingress", "web")


def encoded(**entries: str) -> dict[str, str]:
    return {name.replace("_", "."): b64encode(v.encode()).decode() for name, v in entries.items()}


def reason(secrets: dict[Key, dict[str, str]]) -> str:
    with pytest.raises(CertificateError) as found:
        read(WEB, secrets, pair=True)
    return str(found.value)


def test_a_credential_has_the_names_of_kubernetes_or_those_of_istio() -> None:
    expected = Credential(CERTIFICATE, PRIVATE, CA)
    for entries in (
        encoded(tls_crt=CERTIFICATE, tls_key=PRIVATE, ca_crt=CA),
        encoded(cert=CERTIFICATE, key=PRIVATE, cacert=CA),
    ):
        assert read(WEB, {WEB: entries}, pair=True) == expected


def test_the_authority_may_be_in_a_separate_secret() -> None:
    pair = encoded(tls_crt=CERTIFICATE, tls_key=PRIVATE)
    secrets = {WEB: pair, Key("ingress", "web-cacert"): encoded(ca_crt=CA)}

    assert read(WEB, secrets, pair=True).authority == CA


def test_only_the_authority_is_returned_if_requested() -> None:
    entries = encoded(cert=CERTIFICATE, key=PRIVATE, cacert=CA)

    assert read(WEB, {WEB: entries}, pair=False) == Credential(authority=CA)


def test_an_invalid_credential_is_refused_with_a_reason() -> None:
    other = AUTHORITY.issue_server("other", [], NOW, DAY).private.decode()

    assert reason({}) == "Secret ingress/web does not exist"
    assert "it has no certificate" in reason({WEB: {}})
    assert "the key is not that of the certificate" in reason(
        {WEB: encoded(tls_crt=CERTIFICATE, tls_key=other)}
    )
    assert "not a PEM private key" in reason({WEB: encoded(tls_crt=CERTIFICATE, tls_key="key")})
    assert "tls.crt that is not text" in reason({WEB: {"tls.crt": "/w=="}})


def test_only_certificates_and_keys_are_kept_of_secrets() -> None:
    assert entries_of({"data": {"tls.crt": "eA==", "password": "eQ=="}}) == {"tls.crt": "eA=="}
    assert entries_of({}) == {}
