"""Keys, certificates and authorities: `pergola.pki`."""

from datetime import UTC, datetime, timedelta

from pergola.pki import (
    SETTLE,
    Authority,
    ClientCertificate,
    Identity,
    KeyAlgorithm,
    Pair,
    Plan,
    Template,
    Token,
    TokenFile,
    advance,
    generate_key,
    hosts_of,
    key_pair,
    key_set,
    kubeconfig,
    next_change,
    private_pem,
    public_pem,
    read_bundle,
    read_certificate,
    read_private_key,
    renewal_of,
    signed_by,
    write_bundle,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MONTH = timedelta(days=30)


def authority() -> None:
    """Create an authority, and issue a certificate for a server."""
    ca = Authority.create("ca", NOW, 12 * MONTH)
    template = Template(common_name="web", lifetime=MONTH, hosts=("web.shop.svc",), for_server=True)
    pair = ca.issue(template, NOW)
    assert isinstance(pair, Pair)
    found = read_certificate(pair.public)
    assert hosts_of(found) == {"web.shop.svc"}
    assert signed_by(found, read_certificate(ca.pair.public))
    assert NOW < renewal_of(found) < NOW + MONTH
    assert read_bundle(write_bundle([found])) == [found]


def access() -> None:
    """Write kubeconfigs for a client certificate, a token, and a file with a token."""
    ca = Authority.create("ca", NOW, MONTH)
    template = Template(common_name="ann", lifetime=MONTH, for_client=True)
    ann = ClientCertificate(ca.issue(template, NOW))
    for found in (ann, Token("secret"), TokenFile("/var/run/token")):
        config = kubeconfig("garden", "https://garden.example", ca.pair.public, found)
        assert config["current-context"] == "garden"


def rotation() -> None:
    """Let a server's identity change so that clients always trust it."""
    plan = Plan("web", ("web.shop.svc",))
    first = advance(None, plan, NOW)
    assert isinstance(first, Identity)
    assert advance(first, plan, NOW + timedelta(minutes=1)) is first
    due = next_change(first)
    second = advance(first, plan, due)
    assert set(read_bundle(first.bundle)) < set(read_bundle(second.bundle))
    assert next_change(second) <= due + SETTLE


def keys() -> None:
    """Generate keys, and publish those that verify tokens."""
    key = generate_key(KeyAlgorithm.RSA_3072)
    assert private_pem(read_private_key(private_pem(key))) == private_pem(key)
    assert public_pem(key.public_key()).startswith(b"-----BEGIN PUBLIC KEY-----")
    pair = key_pair(KeyAlgorithm.RSA_3072)
    assert len(key_set(pair.public)["keys"]) == 1
