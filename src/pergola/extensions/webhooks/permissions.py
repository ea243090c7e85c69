"""Permissions of an extension with webhooks: its certificates and its registrations."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extensions.webhooks.declare import configuration_name
from pergola.manifests import READ, rule

_CONFIGURATIONS: Final = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
_GROUP: Final = "admissionregistration.k8s.io"


def cluster_rules(component: str, owner_namespace: str = "") -> list[JsonObject]:
    """Return rules of a ClusterRole for the webhook configurations of this component only.

    Args:
        owner_namespace: the namespace whose uid is read, as in `WebhookSettings`.
    """
    own = [configuration_name(component)]
    rules = [
        rule(_GROUP, _CONFIGURATIONS, ["create"]),  # resourceNames cannot restrict it
        rule(_GROUP, _CONFIGURATIONS, [*READ, "patch", "delete"], own),
    ]
    if owner_namespace:
        rules.append(rule("", ["namespaces"], ["get"], [owner_namespace]))
    return rules


def namespace_rules(component: str) -> list[JsonObject]:
    """Return rules of a Role for the Secret with the component's certificates."""
    own = [certificates_of(component)]
    return [
        rule("", ["secrets"], ["create"]),
        rule("", ["secrets"], [*READ, "patch"], own),
    ]


def certificates_of(component: str) -> str:
    """Return the name of the Secret with a component's certificates."""
    return f"{configuration_name(component)}-webhooks"
