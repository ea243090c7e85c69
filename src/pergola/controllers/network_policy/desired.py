"""The NetworkPolicies that a Service needs: pure functions (spec 11 §4.3, §4.4).

`intents.intents` decides who may talk to a Service; `render` returns the policies of one intent,
and `desired` merges those of all intents.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from pergola.api.kinds import NETWORK_POLICY
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.annotations import PolicyPort
from pergola.controllers.network_policy.descriptions import (
    egress_description,
    ingress_description,
    world_description,
)
from pergola.controllers.network_policy.intents import (
    Environment,
    Intent,
    Kind,
    canonical,
    id_of,
    intents,
)
from pergola.controllers.network_policy.names import (
    DESCRIPTION,
    FROM_INGRESS_CONTROLLER,
    FROM_ISTIO,
    METADATA_NAME,
    SERVICE_NAME,
    SERVICE_NAMESPACE,
    alias_base,
    egress_policy,
    ingress_policy,
    world_policy,
)
from pergola.controllers.network_policy.service import ServiceView

__all__ = ["Environment", "Intent", "desired", "intents", "render"]

_SUFFIXES: Final[dict[Kind, str]] = {"ingress": FROM_INGRESS_CONTROLLER, "istio": FROM_ISTIO}
_HASHED: Final = 5


def desired(service: ServiceView, desired: Iterable[Intent]) -> dict[Key, JsonObject]:
    """Return the policies of a Service by their keys.

    Two intents may need policies of the same name, such as a peer and a Gateway in one namespace.
    An ingress policy then admits both; an egress policy for other callers gets its own name.
    """
    policies: dict[Key, JsonObject] = {}
    for intent in desired:
        for policy in render(service, intent):
            key = Key.of(policy)
            known = policies.get(key)
            if known is None:
                policies[key] = policy
            elif known["spec"]["podSelector"] == policy["spec"]["podSelector"]:
                policies[key] = _joined(known, policy)
            else:
                policies.setdefault(*_renamed(policy))
    return policies


def render(service: ServiceView, intent: Intent) -> list[JsonObject]:
    """Return the policies of one intent: for the Service's pods, and for callers if known."""
    if intent.kind == "world":
        return [_world(service, intent)]
    base = _base(service, intent)
    suffix = _SUFFIXES.get(intent.kind, "")
    away = intent.peer != service.key.namespace
    # The name for a Gateway in another namespace contains that namespace, as for a peer.
    ingress_suffix = "" if intent.kind == "istio" and away else suffix
    return [
        _ingress(service, intent, ingress_policy(service.key, base, intent.peer, ingress_suffix)),
        _egress(service, intent, egress_policy(service.key, base, intent.peer, suffix)),
    ]


def _base(service: ServiceView, intent: Intent) -> str:
    base = id_of(service, intent.ports[0])
    return alias_base(base, intent.alias) if intent.kind == "alias" else base


def _world(service: ServiceView, intent: Intent) -> JsonObject:
    rule: JsonObject = {"ports": list(map(_rendered, intent.ports))} if intent.ports else {}
    spec = {
        "podSelector": service.pod_selector,
        "policyTypes": ["Ingress"],
        "ingress": [rule],
    }
    return _policy(
        service, world_policy(service.key), world_description(service, intent.ports), spec
    )


def _ingress(service: ServiceView, intent: Intent, key: Key) -> JsonObject:
    peer = _peer(intent.callers, service.key.namespace, intent.peer)
    spec = {
        "podSelector": service.pod_selector,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [peer], "ports": list(map(_rendered, intent.ports))}],
    }
    text = ingress_description(service, intent.ports[0], intent.peer, intent.callers, intent.kind)
    return _policy(service, key, text, spec)


def _egress(service: ServiceView, intent: Intent, key: Key) -> JsonObject:
    peer = _peer(service.pod_selector, intent.peer, service.key.namespace)
    spec = {
        "podSelector": intent.callers,
        "policyTypes": ["Egress"],
        "egress": [{"to": [peer], "ports": list(map(_rendered, intent.ports))}],
    }
    text = egress_description(service, intent.ports[0], intent.peer, intent.callers, intent.kind)
    return _policy(service, key, text, spec)


def _peer(pods: JsonObject, here: str, there: str) -> JsonObject:
    if here == there:
        return {"podSelector": pods}
    return {
        "podSelector": pods,
        "namespaceSelector": {"matchLabels": {METADATA_NAME: there}},
    }


def _rendered(port: PolicyPort) -> JsonObject:
    rendered: JsonObject = {"protocol": port.protocol}
    if port.port is not None:
        rendered["port"] = port.port
    if port.end_port is not None:
        rendered["endPort"] = port.end_port
    return rendered


def _policy(service: ServiceView, key: Key, description: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": NETWORK_POLICY.api_version,
        "kind": NETWORK_POLICY.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {
                SERVICE_NAME: service.key.name,
                SERVICE_NAMESPACE: service.key.namespace,
            },
            "annotations": {DESCRIPTION: description},
        },
        "spec": spec,
    }


def _joined(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return a policy with the rules of both."""
    rules = "ingress" if "ingress" in one["spec"] else "egress"
    both = one["spec"][rules] + [r for r in other["spec"][rules] if r not in one["spec"][rules]]
    texts = [policy["metadata"]["annotations"][DESCRIPTION] for policy in (one, other)]
    annotations = {DESCRIPTION: " ".join(dict.fromkeys(texts))}
    return {
        **one,
        "metadata": {**one["metadata"], "annotations": annotations},
        "spec": {**one["spec"], rules: both},
    }


def _renamed(policy: JsonObject) -> tuple[Key, JsonObject]:
    """Return a policy under its alternative name; the other callers' policy has the usual one."""
    digest = hashlib.sha256(canonical(policy["spec"]["podSelector"])).hexdigest()
    name = f"{policy['metadata']['name']}-{digest[:_HASHED]}"
    renamed = {**policy, "metadata": {**policy["metadata"], "name": name}}
    return Key.of(renamed), renamed
