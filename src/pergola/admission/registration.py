"""How webhooks are registered with an API server: rendered from what the server serves.

A registration is data; `render` makes the entry of a MutatingWebhookConfiguration or a
ValidatingWebhookConfiguration of it (spec 12 §2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pergola.admission.review import Operation
from pergola.api.objects import JsonObject

REVIEW_VERSIONS: Final = ("v1", "v1beta1")


class Rule(NamedTuple):
    """Which requests are reviewed; a subresource is part of a resource's name (`pods/status`)."""

    operations: Sequence[Operation]
    groups: Sequence[str]
    versions: Sequence[str]
    resources: Sequence[str]

    def render(self) -> JsonObject:
        """The rule as the API server reads it."""
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
        path: where it is served, such as `/webhooks/seccomp-profile`.
        namespace_selector: a LabelSelector; `{}` selects all namespaces.
        object_selector: a LabelSelector; `{}` selects all objects.
        reinvocation: of mutating webhooks only; the API server's default if None.
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
        """The entry.

        Args:
            client_config: where the server is, with the CA bundle: `service` or `url` form.
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
