"""A server's certificate and its authorities, renewed without an interruption of trust.

A new authority is trusted before it signs anything, and an old one stays trusted until it expires,
because readers of the bundle may lag. The certificates and the time alone determine what is due, so
any replica can continue where another one stopped.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from pergola.pki.authorities import BACKDATED, Authority
from pergola.pki.certificates import (
    hosts_of,
    read_bundle,
    read_certificate,
    renewal_of,
    signed_by,
    write_bundle,
)
from pergola.pki.errors import CertificateError
from pergola.pki.keys import Pair

SETTLE: Final = timedelta(minutes=5)
"""The time for which a new authority is in the bundle before it signs."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The certificate that a server presents, and the authorities that its clients trust.

    Attributes:
        bundle: The certificates of all trusted authorities, PEM, newest first.
        authority_key: The key of the newest authority, PEM.
        server: The certificate that the server presents.
    """

    bundle: bytes
    authority_key: bytes
    server: Pair


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired identity.

    Attributes:
        name: The server's common name.
        hosts: The DNS names and addresses of the server.
        lifetime: For authorities and certificates.
    """

    name: str
    hosts: tuple[str, ...]
    lifetime: timedelta = timedelta(days=30)


def advance(identity: Identity | None, plan: Plan, now: datetime) -> Identity:
    """Return the identity that is due now; the same object if nothing changes.

    An unreadable identity is replaced as a whole.
    """
    if identity is None:
        return _fresh(plan, now)
    try:
        return _server_renewed(_authority_renewed(identity, plan, now), plan, now)
    except CertificateError:
        return _fresh(plan, now)


def next_change(identity: Identity) -> datetime:
    """Return when to call `advance` again; the identity changes then, or soon after.

    Raises:
        CertificateError: The identity cannot be read.
    """
    newest, *older = read_bundle(identity.bundle)
    served = read_certificate(identity.server.public)
    follows = signed_by(served, newest)
    times = [renewal_of(newest), renewal_of(served) if follows else _trusted_from(newest)]
    times += [authority.not_valid_after_utc for authority in older]
    return min(times)


def _fresh(plan: Plan, now: datetime) -> Identity:
    authority = Authority.create(f"{plan.name}-ca", now, plan.lifetime)
    server = authority.issue_server(plan.name, plan.hosts, now, plan.lifetime)
    return Identity(authority.pair.public, authority.pair.private, server)


def _authority_renewed(identity: Identity, plan: Plan, now: datetime) -> Identity:
    """Put a new authority first if the newest is due for renewal, and drop expired ones."""
    kept = [old for old in read_bundle(identity.bundle) if now < old.not_valid_after_utc]
    if not kept:
        return _fresh(plan, now)
    if now < renewal_of(kept[0]):
        if len(kept) == len(read_bundle(identity.bundle)):
            return identity
        return replace(identity, bundle=write_bundle(kept))
    authority = Authority.create(f"{plan.name}-ca", now, plan.lifetime)
    return replace(
        identity,
        bundle=authority.pair.public + write_bundle(kept),
        authority_key=authority.pair.private,
    )


def _server_renewed(identity: Identity, plan: Plan, now: datetime) -> Identity:
    """Replace the server certificate if it is due and the newest authority may sign."""
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
    return replace(
        identity, server=authority.issue_server(plan.name, plan.hosts, now, plan.lifetime)
    )


def _newest(identity: Identity) -> Authority:
    return Authority(Pair(identity.bundle, identity.authority_key))


def _trusted_from(authority: x509.Certificate) -> datetime:
    return authority.not_valid_before_utc + BACKDATED + SETTLE


def _covers(certificate: x509.Certificate, hosts: Collection[str]) -> bool:
    return hosts_of(certificate) == frozenset(hosts)
