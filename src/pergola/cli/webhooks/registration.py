"""Webhook configurations from the command line: rendering, and writing to a cluster."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pergola.admission.configurations import by_service, by_url, is_registered
from pergola.admission.webhook import registrations
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.pki import CertificateError, read_bundle
from pergola.resource_manager.serving import installation_of
from pergola.resource_manager.serving import render as render_configurations
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.facts.environment import serves_hvpas
from pergola.resource_manager.webhooks.installation import Installation


class WebhooksError(Exception):
    """The command cannot do what was requested; the text says why and what to do."""


def installation_for(
    config: ResourceManagerConfiguration,
    kind: Literal["runtime", "target"] | None,
    prefix: str | None,
    namespace: str | None,
    *,
    hvpa: bool = False,
    garden: bool = False,
) -> Installation:
    """Return the installation in the configuration, with the command line's changes."""
    place = installation_of(config)
    return replace(
        place,
        kind=kind or place.kind,
        prefix=place.prefix if prefix is None else prefix,
        namespace=namespace or place.namespace,
        hvpa=hvpa,
        garden=garden or place.garden,
    )


def configurations(
    config: ResourceManagerConfiguration, place: Installation, url: str | None, bundle: bytes
) -> list[JsonObject]:
    """Return the webhook configurations of an installation.

    Raises:
        WebhooksError: There are none, or the API server cannot reach the server.
    """
    entries = registrations(webhooks(config.webhooks, Dependencies(place, DocumentLookups([]))))
    if not entries:
        raise WebhooksError(
            f"the configuration enables no webhook that a {place.kind} registers: enable one, such "
            "as webhooks.seccompProfile.enabled: true"
        )
    base = url or config.server.webhooks.self_signed.url
    if not base and place.kind == "target":
        raise WebhooksError(
            "the API server of a target cannot reach a Service of another cluster: pass --url, "
            f"such as --url https://{place.name}.{place.namespace}:443"
        )
    address = by_url(base) if base else by_service(place.name, place.namespace)
    return render_configurations(place, entries, address, bundle)


def read_ca(file: Path) -> bytes:
    """Return the content of a PEM file with certificates.

    Raises:
        WebhooksError: It has no certificate, or an unreadable one.
    """
    bundle = file.read_bytes()
    try:
        found = read_bundle(bundle)
    except CertificateError:
        raise WebhooksError(f"{file} is not a PEM file with valid certificates") from None
    if not found:
        raise WebhooksError(f"{file} has no certificate")
    return bundle


async def as_served(client: Client, place: Installation) -> Installation:
    """Return the installation, adapted to the kinds that a cluster serves."""
    return replace(place, hvpa=await serves_hvpas(client))


async def register(client: Client, obj: JsonObject) -> str:
    """Create or update a webhook configuration; return what was done."""
    gvk, key = GroupVersionKind.of(obj), Key.of(obj)
    try:
        live = await client.get(gvk, key)
    except NotFound:
        await client.create(obj)
        return f"{gvk.kind} {key.name} is registered"
    if is_registered(obj, live):
        return f"{gvk.kind} {key.name} was already registered"
    await client.patch(
        gvk, key, {"metadata": {"labels": obj["metadata"]["labels"]}, "webhooks": obj["webhooks"]}
    )
    return f"{gvk.kind} {key.name} is updated"
