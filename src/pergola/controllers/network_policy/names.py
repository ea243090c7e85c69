"""Names of NetworkPolicies and the label keys of callers: part of the API (spec 11 §4.2, §4.3)."""

import hashlib
from typing import Final, NamedTuple

from pergola.api.objects import Key

PREFIX: Final = "networking.resources.gardener.cloud/"
ALLOWED: Final = "allowed"

# Annotations of Services.
NAMESPACE_SELECTORS: Final = f"{PREFIX}namespace-selectors"
NAMESPACE_ALIAS: Final = f"{PREFIX}pod-label-selector-namespace-alias"
FROM_WORLD: Final = f"{PREFIX}from-world-to-ports"
POD_SELECTOR: Final = f"{PREFIX}networkpolicy-pod-selector"
LEGACY_ALIAS: Final = f"{PREFIX}from-policy-pod-label-selector"
LEGACY_PORTS: Final = f"{PREFIX}from-policy-allowed-ports"
_ALIAS_BEGINS: Final = f"{PREFIX}from-"
_ALIAS_ENDS: Final = "-allowed-ports"

# Labels and annotation of the policies.
SERVICE_NAME: Final = f"{PREFIX}service-name"
SERVICE_NAMESPACE: Final = f"{PREFIX}service-namespace"
DESCRIPTION: Final = "gardener.cloud/description"

# The label with which Kubernetes names a namespace.
METADATA_NAME: Final = "kubernetes.io/metadata.name"

FROM_INGRESS_CONTROLLER: Final = "-from-ingress-controller"
FROM_ISTIO: Final = "-from-istio"

_LONGEST: Final = 63
_KEPT: Final = 57
_HASHED: Final = 5


class LabelKey(NamedTuple):
    """A label key of callers; `key` differs from `full` if the full key is too long for a label."""

    key: str
    full: str


def caller_label(*parts: str) -> LabelKey:
    """Return a label key: `a`, `x` → `networking.resources.gardener.cloud/to-a-x`.

    A name of more than 63 characters is truncated and hashed; clients do the same.
    """
    name = f"to-{'-'.join(parts)}"
    return LabelKey(PREFIX + shortened(name), PREFIX + name)


def shortened(name: str) -> str:
    """Return the name part of a label key; if too long, 57 characters and five of its SHA-256."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{name[:_KEPT]}-{digest[:_HASHED]}"


def port_id(service: str, protocol: str, port: int | str) -> str:
    """Return the id of a port: `web`, `TCP`, `80` → `web-tcp-80`."""
    return f"{service}-{protocol.lower()}-{port}"


def alias_base(port: str, alias: str) -> str:
    """Return the id of an alias's port: `web-tcp-80`, `scrape` → `web-tcp-80-via-scrape`."""
    return f"{port}-via-{alias}"


def ingress_policy(service: Key, base: str, peer: str, suffix: str = "") -> Key:
    """Return the key of the policy that allows ingress from callers.

    Args:
        base: the id of the port, from `port_id` or `alias_base`.
        peer: the callers' namespace.
        suffix: replaces the callers' namespace at the end of the name.
    """
    if not suffix and peer != service.namespace:
        suffix = f"-from-{peer}"
    return Key(service.namespace, f"ingress-to-{base}{suffix}")


def egress_policy(service: Key, base: str, peer: str, suffix: str = "") -> Key:
    """Return the key of the policy that allows egress from callers."""
    target = base if peer == service.namespace else f"{service.namespace}-{base}"
    return Key(peer, f"egress-to-{target}{suffix}")


def world_policy(service: Key) -> Key:
    """Return the key of the policy that allows ingress from everywhere."""
    return Key(service.namespace, f"ingress-to-{service.name}-from-world")


def alias_of(annotation: str) -> str | None:
    """Return the alias in an annotation, which may be empty, or None for other annotations."""
    if not (annotation.startswith(_ALIAS_BEGINS) and annotation.endswith(_ALIAS_ENDS)):
        return None
    # For `from-allowed-ports`, both ends match only because they share a dash.
    if len(annotation) < len(_ALIAS_BEGINS) + len(_ALIAS_ENDS):
        return None
    return annotation[len(_ALIAS_BEGINS) : -len(_ALIAS_ENDS)]
