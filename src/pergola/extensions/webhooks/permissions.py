"""What an extension with webhooks may do besides: keep its certificates, and register itself."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extensions.webhooks.declare import configuration_name

_CONFIGURATIONS: Final = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
_GROUP: Final = "admissionregistration.k8s.io"


def cluster_rules(component: str, owner_namespace: str = "") -> list[JsonObject]:
    """For a ClusterRole: the webhook configurations of this component, and of nobody else.

    Args:
        owner_namespace: whose uid is read, as in `WebhookSettings`.
    """
    own = [configuration_name(component)]
    rules = [
        _rule(_GROUP, _CONFIGURATIONS, ["create"]),  # which knows no names
        _rule(_GROUP, _CONFIGURATIONS, ["get", "list", "watch", "patch", "delete"], own),
    ]
    if owner_namespace:
        rules.append(_rule("", ["namespaces"], ["get"], [owner_namespace]))
    return rules


def namespace_rules(component: str) -> list[JsonObject]:
    """For a Role where the component runs: the Secret with its certificates."""
    own = [certificates_of(component)]
    return [
        _rule("", ["secrets"], ["create"]),
        _rule("", ["secrets"], ["get", "list", "watch", "patch"], own),
    ]


def certificates_of(component: str) -> str:
    """The name of the Secret with a component's certificates."""
    return f"{configuration_name(component)}-webhooks"


def _rule(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> JsonObject:
    rule: JsonObject = {"apiGroups": [group], "resources": list(resources), "verbs": verbs}
    if names:
        rule["resourceNames"] = names
    return rule
