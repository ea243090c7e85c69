"""A policy that keeps Calico from marking nodes as unavailable (spec 31 §7.2).

Without an overlay, the route controller reports when a node has its routes; Calico would report
that the network is available before that.
"""

from typing import Final

from pergola.api.known.kubernetes_versions import Minor
from pergola.api.objects import JsonObject
from pergola.manifests import manifest
from pergola.providers.aws.control_plane.render.values import Values

_NAME: Final = "block-calico-network-unavailable"
_GROUP: Final = "admissionregistration.k8s.io"
_GATE: Final = "MutatingAdmissionPolicy"
_STABLE: Final = Minor(1, 36)
_BETA: Final = Minor(1, 34)
_IS_CONDITION: Final = "c.type == 'NetworkUnavailable'"


def shoot_objects(values: Values) -> list[JsonObject]:
    """Return the policy and its binding, where the Shoot needs it and can have it."""
    version = _api_version(values)
    if values.has_overlay or values.part("networking").get("type") != "calico" or not version:
        return []
    api = f"{_GROUP}/{version}"
    return [
        manifest(api, _GATE, _NAME, spec=_policy()),
        manifest(api, f"{_GATE}Binding", f"{_NAME}-binding", spec={"policyName": _NAME}),
    ]


def _api_version(values: Values) -> str:
    """Return the version of the policies that the API server serves; empty if none."""
    minor = values.version.of_minor
    if minor >= _STABLE:
        return "v1"
    version = "v1beta1" if minor >= _BETA else "v1alpha1"
    server = values.part("kubernetes", "kubeAPIServer")
    gates, served = server.get("featureGates") or {}, server.get("runtimeConfig") or {}
    is_on = gates.get(_GATE) is True and served.get(f"{_GROUP}/{version}") is True
    return version if is_on else ""


def _policy() -> JsonObject:
    """Return the spec: the condition of a node's status stays what it was."""
    old = "variables.oldNetworkUnavailableCondition"
    others = "variables.conditionsWithoutNetworkUnavailable"
    is_there = "has(oldObject.status) && has(oldObject.status.conditions)"
    patch = (
        '[\n  JSONPatch{\n    op: "replace",\n    path: "/status/conditions",\n'
        "    value: variables.finalConditions\n  }\n]\n"
    )
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["UPDATE"],
                    "resources": ["nodes/status"],
                }
            ]
        },
        "matchConditions": [
            {
                "name": "is-calico-node",
                "expression": (
                    'request.userInfo.username == "system:serviceaccount:kube-system:calico-node"'
                ),
            },
            {
                "name": "has-network-unavailable-in-request",
                "expression": f"object.status.conditions.exists(c, {_IS_CONDITION})",
            },
        ],
        "variables": [
            {
                "name": "oldNetworkUnavailableCondition",
                "expression": (
                    f"{is_there} ?  oldObject.status.conditions.filter(c, {_IS_CONDITION}) : []"
                ),
            },
            {
                "name": "conditionsWithoutNetworkUnavailable",
                "expression": (
                    "object.status.conditions.filter(c, c.type != 'NetworkUnavailable')"
                ),
            },
            {
                "name": "finalConditions",
                "expression": f"{old}.size() > 0 ? {others} + {old} : {others}",
            },
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
