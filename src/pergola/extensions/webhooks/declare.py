"""The webhooks of extensions: names, enabling, and several owners sharing one server."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject
from pergola.extension_api.errors import ExtensionError

EXCLUDED_FROM_REMEDIATION: Final = "remediation.webhook.shoot.gardener.cloud/exclude"
LABELS: Final = {EXCLUDED_FROM_REMEDIATION: "true"}
_DOMAIN: Final = "extensions.gardener.cloud"


class WebhookError(ExtensionError):
    """Webhooks are declared or configured in a way that cannot work."""


def webhook_name(purpose: str, component: str) -> str:
    """Return a name such as `network.azure.extensions.gardener.cloud` for `provider-azure`."""
    return f"{purpose}.{component.removeprefix('provider-')}.{_DOMAIN}"


def configuration_name(component: str) -> str:
    """Return the name of a component's webhook configurations and Service."""
    return f"gardener-extension-{component}"


def enabled(webhooks: Iterable[Webhook], disabled: Collection[str]) -> list[Webhook]:
    """Return the webhooks that are not disabled by their name or its first part.

    Raises:
        WebhookError: A disabled name is unknown, or two webhooks share a name or path.
    """
    known = list(webhooks)
    names = {webhook.short_name for webhook in known}
    if unknown := sorted(set(disabled) - names - {webhook.registration.name for webhook in known}):
        raise WebhookError(
            f"--disable-webhooks names {', '.join(unknown)}, but the webhooks are "
            f"{', '.join(sorted(names)) or 'none'}"
        )
    _check_unique({w.registration.name: [] for w in known}, known, "name")
    _check_unique({w.registration.path: [] for w in known}, known, "path")
    return [
        webhook
        for webhook in known
        if not {webhook.short_name, webhook.registration.name} & set(disabled)
    ]


def side_by_side(owned: Iterable[tuple[str, Sequence[Webhook]]]) -> list[list[Webhook]]:
    """Return the webhooks of several owners with unique paths, so that one server serves them all.

    A path used by several owners ends with the owner, as in `/webhooks/validate/calico`.
    """
    groups = list(owned)
    owners = Counter(
        path for _, webhooks in groups for path in {w.registration.path for w in webhooks}
    )
    return [
        [
            _at(webhook, owner) if owners[webhook.registration.path] > 1 else webhook
            for webhook in webhooks
        ]
        for owner, webhooks in groups
    ]


def selects(label: str, values: Iterable[str]) -> JsonObject:
    """Return a LabelSelector requirement: the label has one of the values."""
    return {"key": label, "operator": "In", "values": sorted(values)}


def _at(webhook: Webhook, owner: str) -> Webhook:
    path = f"{webhook.registration.path}/{owner}"
    return replace(webhook, registration=replace(webhook.registration, path=path))


def _check_unique(owners: Mapping[str, list[str]], webhooks: Iterable[Webhook], what: str) -> None:
    for webhook in webhooks:
        owners[getattr(webhook.registration, what)].append(webhook.registration.name)
    for value, names in owners.items():
        if len(names) > 1:
            raise WebhookError(
                f"{len(names)} webhooks have the {what} {value} ({', '.join(names)}): give each "
                "its own"
            )
