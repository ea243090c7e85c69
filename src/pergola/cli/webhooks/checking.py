"""`pergola webhooks check`: compare declarations, registration, server and certificates."""

import asyncio
import base64
import ssl
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509

from pergola.admission.configurations import configuration_keys
from pergola.admission.inspection import (
    Finding,
    blocking,
    entries,
    host_of,
    misplaced,
    own_needs,
    path_of,
    unlike,
    unserved,
    untrusted,
)
from pergola.api.kinds import DEPLOYMENT, NAMESPACE
from pergola.api.objects import JsonObject, Key, labels_of, map_at
from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.api.texts import counted
from pergola.cli.output import ReportFormat, show
from pergola.cli.text import say
from pergola.cli.webhooks.registration import as_served, configurations
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import ClusterConfig
from pergola.pki import CertificateError, read_bundle, read_certificate
from pergola.resource_manager.serving import configuration_name
from pergola.resource_manager.webhooks.installation import Installation

_SECONDS: Final = 10.0
_FINE: Final = "all webhooks are registered correctly, and none blocks what it must not"


class Question(NamedTuple):
    """The inputs of a check.

    Attributes:
        url: used by API servers to reach the server; the configuration's if None.
        address: `host:port` of the server; the URL's if None.
    """

    config: ResourceManagerConfiguration
    place: Installation
    url: str | None
    address: str | None


async def findings(cluster: ClusterConfig, question: Question) -> list[Finding]:
    """Return all findings without duplicates."""
    async with Client.connect(cluster) as client:
        place = await as_served(client, question.place)
        live = entries(await _registered(client, place))
        given = question.url or question.config.server.webhooks.self_signed.url
        base = _with_port(given, live) or _registered_url(place, live)
        desired = entries(configurations(question.config, place, base, b""))
        labels, pods = await _own(client, place)
        found = [
            *blocking(desired | live, own_needs(place.name, place.namespace, labels, pods)),
            *unlike(desired, live),
            *misplaced(desired, live, "" if given else "; pass --url if that is correct"),
        ]
        where = question.address or (urlsplit(base).netloc if given else "")
        served = None
        if where:
            paths = sorted({path_of(entry) for entry in live.values()})
            known, served, problem = await _asked(where, paths)
            found += [problem] if problem else unserved(live, known)
        found += _certificates(live, served)
    return list(dict.fromkeys(found))


def print_findings(found: Sequence[Finding], output: ReportFormat) -> None:
    """Print findings to standard output, and their number to standard error."""
    show(output, data=[finding._asdict() for finding in found], text=lambda: _print_text(found))


def _print_text(found: Sequence[Finding]) -> None:
    if not found:
        say(_FINE)
        return
    for finding in found:
        subject = f"{finding.webhook} " if finding.webhook else ""
        say(f"{finding.severity}: {subject}{finding.text}")
    errors = sum(finding.severity == "error" for finding in found)
    say(f"{counted(errors, 'error')}, {counted(len(found) - errors, 'warning')}", file=sys.stderr)


def _with_port(url: str, live: dict[str, JsonObject]) -> str:
    """Complete a URL without a port, where the server chose one, with the registered URL's."""
    address = urlsplit(url)
    if not url or address.port:
        return url
    for entry in live.values():
        found = urlsplit(str(map_at(entry, "clientConfig").get("url", "")))
        if found.hostname == address.hostname:
            return f"https://{found.netloc}"
    return url


def _registered_url(place: Installation, live: dict[str, JsonObject]) -> str:
    """Return the registered URL of a target, whose address is otherwise unknown without --url."""
    if place.kind == "runtime":
        return ""
    urls = [urlsplit(str(map_at(entry, "clientConfig").get("url", ""))) for entry in live.values()]
    return next((f"https://{url.netloc}" for url in urls if url.netloc), "")


def _certificates(
    live: dict[str, JsonObject], served: "x509.Certificate | None"
) -> Iterable[Finding]:
    for name, entry in live.items():
        encoded = map_at(entry, "clientConfig").get("caBundle", "")
        try:
            bundle = read_bundle(base64.b64decode(encoded))
        except (CertificateError, ValueError):
            yield Finding("error", name, "has a CA bundle without valid PEM certificates")
            continue
        yield from untrusted(name, bundle, served, host_of(entry), datetime.now(UTC))


async def _asked(
    where: str, paths: list[str]
) -> "tuple[set[str], x509.Certificate | None, Finding | None]":
    """Return the paths that a server serves, and its certificate."""
    host, _, port = where.rpartition(":")
    if not host:
        host, port = where, "443"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the certificate is inspected, not trusted
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
            try:
                der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                known = {path for path in paths if await _serves(reader, writer, path)}
            finally:
                await _close(writer)
    except (OSError, ssl.SSLError, TimeoutError, ValueError, EOFError) as error:
        text = f"the server at {where} cannot be reached: {str(error) or type(error).__name__}"
        return set(), None, Finding("error", "", text)
    return known, read_certificate(ssl.DER_cert_to_PEM_cert(der).encode()), None


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection that the server may have already closed."""
    writer.close()
    with suppress(OSError):  # includes TLS errors
        await writer.wait_closed()


async def _serves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> bool:
    """Return whether a path is served: an empty review gets an answer there, and 404 elsewhere."""
    writer.write(f"POST {path} HTTP/1.1\r\nHost: check\r\nContent-Length: 0\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = next(
        (
            int(line.split(":")[1])
            for line in head.lower().split("\r\n")
            if "content-length" in line
        ),
        0,
    )
    await reader.readexactly(length)
    return " 404 " not in head.split("\r\n")[0]


async def _registered(client: Client, place: Installation) -> list[JsonObject]:
    found = []
    for gvk, key in configuration_keys(configuration_name(place)):
        try:
            found.append(await client.get(gvk, key))
        except NotFound:
            continue
    return found


async def _own(client: Client, place: Installation) -> tuple[dict[str, str], list[JsonObject]]:
    """Return the labels of the installation's namespace, and the templates of its pods."""
    labels = {"kubernetes.io/metadata.name": place.namespace}
    with suppress(NotFound):
        labels = labels_of(await client.get(NAMESPACE, Key("", place.namespace)))
    try:
        deployment = await client.get(DEPLOYMENT, Key(place.namespace, place.name))
    except NotFound:
        return labels, []
    return labels, [map_at(deployment, "spec", "template")]
