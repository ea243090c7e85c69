"""Entries of webhook configurations, as data (spec 12 §2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pergola.admission.review import Operation
from pergola.api.objects import JsonObject

REVIEW_VERSIONS: Final = ("v1", "v1beta1")


class Rule(NamedTuple):
    """Requests that are reviewed; a resource may name a subresource, as in `pods/status`."""

    operations: Sequence[Operation]
    groups: Sequence[str]
    versions: Sequence[str]
    resources: Sequence[str]

    def render(self) -> JsonObject:
        """Return the rule as the API server expects it."""
        return {
            "apiGroups": list(self.groups),
            "apiVersions": list(self.versions),
            "operations": list(self.operations),
            "resources": list(self.resources),
            "scope": "*",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One entry of a webhook configuration.

    Attributes:
        name: fully qualified, such as `seccomp-profile.resources.gardener.cloud`.
        path: on the server, such as `/webhooks/seccomp-profile`.
        namespace_selector: a LabelSelector; `{}` selects all namespaces.
        object_selector: a LabelSelector; `{}` selects all objects.
        reinvocation: for mutating webhooks only; the API server's default if None.
        match_conditions: CEL conditions, each with `name` and `expression`.
    """

    name: str
    path: str
    kind: Literal["mutating", "validating"]
    rules: tuple[Rule, ...]
    namespace_selector: JsonObject = field(default_factory=dict)
    object_selector: JsonObject = field(default_factory=dict)
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    match_policy: Literal["Exact", "Equivalent"] = "Exact"
    timeout_seconds: int = 10
    reinvocation: Literal["Never", "IfNeeded"] | None = None
    match_conditions: tuple[JsonObject, ...] = ()

    def render(self, client_config: JsonObject) -> JsonObject:
        """Return the entry of a webhook configuration.

        Args:
            client_config: the `service` or `url` of the server, with its CA bundle.
        """
        entry: JsonObject = {
            "name": self.name,
            "admissionReviewVersions": list(REVIEW_VERSIONS),
            "clientConfig": client_config,
            "failurePolicy": self.failure_policy,
            "matchPolicy": self.match_policy,
            "namespaceSelector": self.namespace_selector,
            "objectSelector": self.object_selector,
            "rules": [rule.render() for rule in self.rules],
            "sideEffects": "None",
            "timeoutSeconds": self.timeout_seconds,
        }
        if self.match_conditions:
            entry["matchConditions"] = list(self.match_conditions)
        if self.kind == "mutating":
            entry["reinvocationPolicy"] = self.reinvocation or "Never"
        return entry
