"""`pergola webhooks`: how webhooks are registered: printed, applied, and checked."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import App, Parameter

from pergola.api.kinds import DEPLOYMENT, NAMESPACE

if TYPE_CHECKING:
    from cryptography import x509

    from pergola.admission.inspection import Finding
    from pergola.api.objects import JsonObject
    from pergola.api.resource_manager_config import ResourceManagerConfiguration
    from pergola.kube.client import Client
    from pergola.resource_manager.webhooks.installation import Installation

_SECONDS: Final = 10.0

Site = Annotated[
    Literal["runtime", "target"] | None,
    Parameter(
        help="`runtime` for the cluster that it runs in, `target` for another one (a shoot)."
    ),
]
Output = Annotated[Literal["table", "json"], Parameter(alias="-o")]

app: Final = App(
    name="webhooks",
    help="Print, apply or check how the resource manager's webhooks are registered.",
    help_format="plaintext",
)


class WebhooksError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


@app.command
def render(
    *,
    config: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: str | None = None,
    url: str | None = None,
    ca: Path | None = None,
    hvpa: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print the webhook configurations as YAML that `kubectl apply -f -` takes.

    They are made of the same declarations that the server serves.

    Parameters
    ----------
    config
        The configuration file of the resource manager: only what it switches on is registered.
    prefix
        What the names of the Service and the configurations begin with.
    namespace
        Where the Service is.
    url
        Where API servers reach the server, instead of a Service.
    ca
        The certificates that API servers shall trust, PEM.
    hvpa
        The cluster serves Hvpas (autoscaling.k8s.io/v1alpha1), which high-availability-config is
        then asked about, too.
    """
    from dataclasses import replace

    from pergola.cli.configuration import read_settings
    from pergola.kube.yaml import dump

    read = read_settings(config)
    place = _installation(read, installation, prefix, namespace)
    place = replace(place, hvpa=hvpa)
    bundle = _bundle(ca) if ca else b""
    for obj in _configurations(read, place, url, bundle):
        print(f"---\n{dump(obj)}", end="")


@app.command
def apply(
    *,
    config: Path,
    ca: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: str | None = None,
    url: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Register the webhooks in a cluster; what is there already is made the same.

    A resource manager with `server.webhooks.selfSigned` does this itself, and renews its
    certificates.

    Parameters
    ----------
    config
        The configuration file of the resource manager: only what it switches on is registered.
    ca
        The certificates that API servers shall trust, PEM.
    prefix
        What the names of the Service and the configurations begin with.
    namespace
        Where the Service is.
    url
        Where API servers reach the server, instead of a Service.
    kubeconfig
        The cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    from pergola.cli.configuration import read_settings
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    read = read_settings(config)
    place = _installation(read, installation, prefix, namespace)
    bundle = _bundle(ca)

    async def main() -> None:
        async with Client.connect(load(kubeconfig, context)) as client:
            served = await _as_served(client, place)
            for obj in _configurations(read, served, url, bundle):
                print(await _applied(client, obj))

    asyncio.run(main())


@app.command
def check(
    *,
    config: Path,
    installation: Site = None,
    prefix: str | None = None,
    namespace: str | None = None,
    url: str | None = None,
    address: str | None = None,
    output: Output = "table",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Check how the webhooks are registered in a cluster, and whether they are served.

    Would this installation block its own start? Which webhook is registered but not served, served
    but not registered, or has a certificate that ended? Exits with 1 if anything is wrong.

    Parameters
    ----------
    config
        The configuration file of the resource manager.
    prefix
        What the names of the Service and the configurations begin with.
    namespace
        Where the Service is.
    url
        Where API servers reach the server, instead of a Service.
    address
        HOST:PORT of a server to ask what it serves, and with which certificate; that of the url
        unless given.
    output
        `table` for people, `json` for programs.
    kubeconfig
        The cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    from pergola.cli.configuration import read_settings

    read = read_settings(config)
    place = _installation(read, installation, prefix, namespace)
    found = asyncio.run(_check(read, place, url, address, kubeconfig, context))
    if output == "json":
        import orjson

        rows = [finding._asdict() for finding in found]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    elif found:
        for finding in found:
            subject = f"{finding.webhook} " if finding.webhook else ""
            print(f"{finding.severity}: {subject}{finding.text}")
    else:
        print("all webhooks are registered as they should be, and block nothing that they must not")
    if any(finding.severity == "error" for finding in found):
        sys.exit(1)


async def _check(
    config: "ResourceManagerConfiguration",
    place: "Installation",
    url: str | None,
    address: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> "list[Finding]":
    from urllib.parse import urlsplit

    from pergola.admission.inspection import (
        blocking,
        entries,
        own_needs,
        path_of,
        unlike,
        unserved,
    )
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    async with Client.connect(load(kubeconfig, context)) as client:
        place = await _as_served(client, place)
        live = entries(await _registered(client, place))
        base = _with_port(url or config.server.webhooks.self_signed.url, live)
        desired = entries(_configurations(config, place, base, b""))
        labels, pods = await _own(client, place)
        found = [
            *blocking(desired | live, own_needs(place.name, place.namespace, labels, pods)),
            *unlike(desired, live),
        ]
        where = address or (urlsplit(base).netloc if base else "")
        served = None
        if where:
            paths = sorted({path_of(entry) for entry in live.values()})
            known, served, problem = await _asked(where, paths)
            found += [problem] if problem else unserved(live, known)
        found += _certificates(live, served)
    return list(dict.fromkeys(found))


def _with_port(url: str, live: "dict[str, JsonObject]") -> str:
    """An address without a port is that of a server that chose its port: the registered one."""
    from urllib.parse import urlsplit

    from pergola.api.objects import map_at

    wanted = urlsplit(url)
    if not url or wanted.port:
        return url
    for entry in live.values():
        found = urlsplit(str(map_at(entry, "clientConfig").get("url", "")))
        if found.hostname == wanted.hostname:
            return f"https://{found.netloc}"
    return url


def _certificates(
    live: "dict[str, JsonObject]", served: "x509.Certificate | None"
) -> "list[Finding]":
    import base64
    from datetime import UTC, datetime

    from pergola.admission.inspection import Finding, host_of, untrusted
    from pergola.api.objects import map_at
    from pergola.pki import CertificateError, read_bundle

    found: list[Finding] = []
    for name, entry in live.items():
        try:
            bundle = read_bundle(
                base64.b64decode(map_at(entry, "clientConfig").get("caBundle", ""))
            )
        except (CertificateError, ValueError) as error:
            found.append(Finding("error", name, f"has no usable CA bundle: {error}"))
            continue
        found += untrusted(name, bundle, served, host_of(entry), datetime.now(UTC))
    return found


async def _asked(
    where: str, paths: list[str]
) -> "tuple[set[str], x509.Certificate | None, Finding | None]":
    """Which paths a server knows, and what certificate it shows."""
    import ssl

    from pergola.admission.inspection import Finding
    from pergola.pki import read_certificate

    host, _, port = where.rpartition(":")
    if not host:
        host, port = where, "443"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # looked at, not trusted: that is what is checked
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
            try:
                der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                known = {path for path in paths if await _knows(reader, writer, path)}
            finally:
                await _closed(writer)
    except (OSError, ssl.SSLError, TimeoutError, ValueError, EOFError) as error:
        text = f"the server at {where} cannot be reached: {str(error) or type(error).__name__}"
        return set(), None, Finding("error", "", text)
    return known, read_certificate(ssl.DER_cert_to_PEM_cert(der).encode()), None


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Ends a connection; that the other side may have been quicker does not matter."""
    writer.close()
    with suppress(OSError):  # also those of TLS
        await writer.wait_closed()


async def _knows(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> bool:
    """Whether a path is served: an empty review is answered there, and not found elsewhere."""
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


async def _as_served(client: "Client", place: "Installation") -> "Installation":
    """The installation, with what the cluster says of itself."""
    from dataclasses import replace

    from pergola.resource_manager.webhooks.high_availability_config.observe import serves_hvpas

    return replace(place, hvpa=await serves_hvpas(client))


async def _registered(client: "Client", place: "Installation") -> "list[JsonObject]":
    from pergola.admission.configurations import configuration_keys
    from pergola.kube.errors import NotFound
    from pergola.resource_manager.serving import configuration_name

    found = []
    for gvk, key in configuration_keys(configuration_name(place)):
        try:
            found.append(await client.get(gvk, key))
        except NotFound:
            continue
    return found


async def _own(
    client: "Client", place: "Installation"
) -> "tuple[dict[str, str], list[JsonObject]]":
    """The labels of the installation's namespace, and its pods as they will be created."""
    from pergola.api.objects import Key, labels_of, map_at
    from pergola.kube.errors import NotFound

    labels = {"kubernetes.io/metadata.name": place.namespace}
    with suppress(NotFound):
        namespace = await client.get(NAMESPACE, Key("", place.namespace))
        labels = labels_of(namespace)
    try:
        deployment = await client.get(DEPLOYMENT, Key(place.namespace, place.name))
    except NotFound:
        return labels, []
    return labels, [map_at(deployment, "spec", "template")]


async def _applied(client: "Client", obj: "JsonObject") -> str:
    from pergola.admission.configurations import is_registered
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.kube.errors import NotFound

    gvk, key = GroupVersionKind.of(obj), Key.of(obj)
    try:
        live = await client.get(gvk, key)
    except NotFound:
        await client.create(obj)
        return f"{gvk.kind} {key.name} is registered"
    if is_registered(obj, live):
        return f"{gvk.kind} {key.name} was registered already"
    await client.patch(
        gvk, key, {"metadata": {"labels": obj["metadata"]["labels"]}, "webhooks": obj["webhooks"]}
    )
    return f"{gvk.kind} {key.name} is registered anew"


def _configurations(
    config: "ResourceManagerConfiguration", place: "Installation", url: str | None, bundle: bytes
) -> "list[JsonObject]":
    from pergola.admission.configurations import by_service, by_url
    from pergola.admission.webhook import registrations
    from pergola.resource_manager.serving import render as rendered
    from pergola.resource_manager.webhooks.catalog import webhooks
    from pergola.resource_manager.webhooks.dependencies import Dependencies
    from pergola.resource_manager.webhooks.documents import DocumentLookups

    base = url or config.server.webhooks.self_signed.url
    address = by_url(base) if base else by_service(place.name, place.namespace)
    found = webhooks(config.webhooks, Dependencies(place, DocumentLookups([])))
    return rendered(place, registrations(found), address, bundle)


def _bundle(ca: Path) -> bytes:
    """The certificates of a file, after a look at them."""
    from pergola.pki import CertificateError, read_bundle

    bundle = ca.read_bytes()
    try:
        found = read_bundle(bundle)
    except CertificateError as error:
        raise WebhooksError(f"{ca}: {error}") from None
    if not found:
        raise WebhooksError(f"{ca} has no certificate")
    return bundle


def _installation(
    config: "ResourceManagerConfiguration",
    kind: Literal["runtime", "target"] | None,
    prefix: str | None,
    namespace: str | None,
) -> "Installation":
    """As the configuration says, unless the command line says otherwise."""
    from dataclasses import replace

    from pergola.resource_manager.serving import installation_of

    place = installation_of(config)
    return replace(
        place,
        kind=kind or place.kind,
        prefix=place.prefix if prefix is None else prefix,
        namespace=namespace or place.namespace,
    )
