"""A server's certificate and the authorities behind it, renewed without a moment of distrust.

A new authority is trusted before anything is signed by it, and an old one stays trusted until it
ends: whoever reads the bundle may be a little late. What is due follows from the certificates and
the time alone, so that any replica can go on where another one stopped.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from pergola.pki.certificates import (
    BACKDATED,
    Authority,
    CertificateError,
    Pair,
    hosts_of,
    read_bundle,
    read_certificate,
    renewal_of,
    signed_by,
)

SETTLE: Final = timedelta(minutes=5)
"""How long a new authority is in the bundle before it signs."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a server shows, and what its clients trust.

    Attributes:
        bundle: the certificates of all authorities that may be trusted, PEM, newest first.
        authority_key: the key of the newest one, PEM.
        server: the certificate that is served.
    """

    bundle: bytes
    authority_key: bytes
    server: Pair


@dataclass(frozen=True, slots=True)
class Plan:
    """What an identity shall be like.

    Attributes:
        name: the server's common name.
        hosts: the DNS names and addresses by which it is reached.
        lifetime: of authorities and certificates.
    """

    name: str
    hosts: tuple[str, ...]
    lifetime: timedelta = timedelta(days=30)


def advance(identity: Identity | None, plan: Plan, now: datetime) -> Identity:
    """The identity as it should be now; the very same if nothing is due.

    One that cannot be read is replaced as a whole, as nobody could go on with it.
    """
    if identity is None:
        return _fresh(plan, now)
    try:
        return _server_renewed(_authority_renewed(identity, plan, now), plan, now)
    except CertificateError:
        return _fresh(plan, now)


def next_change(identity: Identity) -> datetime:
    """When to look again; something is due then, or soon after.

    Raises:
        CertificateError: the identity cannot be read.
    """
    newest, *older = read_bundle(identity.bundle)
    served = read_certificate(identity.server.public)
    follows = signed_by(served, newest)
    times = [renewal_of(newest), renewal_of(served) if follows else _trusted_from(newest)]
    times += [authority.not_valid_after_utc for authority in older]
    return min(times)


def _fresh(plan: Plan, now: datetime) -> Identity:
    authority = Authority.create(f"{plan.name}-ca", now, plan.lifetime)
    server = authority.issue(plan.name, plan.hosts, now, plan.lifetime)
    return Identity(authority.pair.public, authority.pair.private, server)


def _authority_renewed(identity: Identity, plan: Plan, now: datetime) -> Identity:
    """With a new authority in front if the newest is due, and without those that have ended."""
    kept = [old for old in read_bundle(identity.bundle) if now < old.not_valid_after_utc]
    if not kept:
        return _fresh(plan, now)
    if now < renewal_of(kept[0]):
        if len(kept) == len(read_bundle(identity.bundle)):
            return identity
        return replace(identity, bundle=_bundle(kept))
    authority = Authority.create(f"{plan.name}-ca", now, plan.lifetime)
    return replace(
        identity,
        bundle=authority.pair.public + _bundle(kept),
        authority_key=authority.pair.private,
    )


def _server_renewed(identity: Identity, plan: Plan, now: datetime) -> Identity:
    """With a new server certificate if it is due and the newest authority may sign."""
    authority, served = _newest(identity), read_certificate(identity.server.public)
    newest, *older = read_bundle(identity.bundle)
    is_fit = (
        authority.has_signed(identity.server.public)
        and now < renewal_of(served)
        and _covers(served, plan.hosts)
    )
    waits = bool(older) and now < _trusted_from(newest) and now < served.not_valid_after_utc
    if is_fit or waits:
        return identity
    return replace(identity, server=authority.issue(plan.name, plan.hosts, now, plan.lifetime))


def _newest(identity: Identity) -> Authority:
    return Authority(Pair(identity.bundle, identity.authority_key))


def _trusted_from(authority: x509.Certificate) -> datetime:
    return authority.not_valid_before_utc + BACKDATED + SETTLE


def _covers(certificate: x509.Certificate, hosts: Collection[str]) -> bool:
    return hosts_of(certificate) == frozenset(hosts)


def _bundle(certificates: Collection[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
