"""Defaults of objects that extend the API server: CRDs, webhooks, policies, API services."""

from collections.abc import Mapping
from typing import Final

from pergola.kube.equality.defaults_pods import SELECTOR_FIELDS
from pergola.kube.equality.shapes import (
    EXACT,
    INJECTED,
    Derived,
    Each,
    Present,
    Shape,
)

_SCHEMA: Final[dict[str, Shape]] = {
    **dict.fromkeys(("description", "type", "format", "title", "pattern", "id", "$ref"), ""),
    **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum"), False),
    "x-kubernetes-embedded-resource": False,
    "x-kubernetes-int-or-string": False,
    "default": EXACT,
    "example": EXACT,
    "enum": EXACT,
}
_SCHEMA.update(
    {
        **dict.fromkeys(("items", "additionalProperties", "not"), Present(_SCHEMA)),
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), _SCHEMA),
        **dict.fromkeys(("properties", "patternProperties", "definitions"), Each(Present(_SCHEMA))),
    }
)
_SERVICE: Final[Mapping[str, Shape]] = {"port": 443}
_CLIENT: Final[Mapping[str, Shape]] = {"service": _SERVICE, "caBundle": INJECTED}
CUSTOM_RESOURCE_DEFINITION: Final[Mapping[str, Shape]] = {
    "spec": {
        "preserveUnknownFields": False,
        "conversion": {"strategy": "None", "webhook": {"clientConfig": _CLIENT}},
        "names": {
            "singular": Derived(lambda beside: str(beside.get("kind")).lower()),
            "listKind": Derived(lambda beside: f"{beside.get('kind')}List"),
        },
        "versions": {
            "deprecated": False,
            "schema": {"openAPIV3Schema": Present(_SCHEMA)},
            "subresources": {"status": Present({})},
            "additionalPrinterColumns": {"description": "", "format": "", "priority": 0},
        },
    }
}
_RULES: Final[Mapping[str, Shape]] = {"scope": "*"}
_WEBHOOK: Final[Mapping[str, Shape]] = {
    "clientConfig": _CLIENT,
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "timeoutSeconds": 10,
    "namespaceSelector": SELECTOR_FIELDS,
    "objectSelector": SELECTOR_FIELDS,
    "rules": _RULES,
}
VALIDATING_WEBHOOKS: Final[Mapping[str, Shape]] = {"webhooks": _WEBHOOK}
MUTATING_WEBHOOKS: Final[Mapping[str, Shape]] = {
    "webhooks": {**_WEBHOOK, "reinvocationPolicy": "Never"}
}
_MATCH: Final[Mapping[str, Shape]] = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": SELECTOR_FIELDS,
    "objectSelector": SELECTOR_FIELDS,
    "resourceRules": _RULES,
    "excludeResourceRules": _RULES,
}
ADMISSION_POLICY: Final[Mapping[str, Shape]] = {
    "spec": {"failurePolicy": "Fail", "matchConstraints": _MATCH}
}
MUTATING_POLICY: Final[Mapping[str, Shape]] = {
    "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _MATCH,
    }
}
ADMISSION_POLICY_BINDING: Final[Mapping[str, Shape]] = {
    "spec": {
        "matchResources": _MATCH,
        "paramRef": {"name": "", "namespace": "", "selector": Present(SELECTOR_FIELDS)},
    }
}
API_SERVICE: Final[Mapping[str, Shape]] = {
    "spec": {
        "caBundle": INJECTED,
        "group": "",
        "insecureSkipTLSVerify": False,
        "service": _SERVICE,
        "version": "",
    }
}
