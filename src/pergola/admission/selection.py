"""Selection of webhooks: whether an API server would call one for a request, and if not, why.

Works on entries of webhook configurations, rendered or stored, without sending anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pergola.admission.review import GroupVersionResource, Operation
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.selectors import format_selector, matches


@dataclass(frozen=True, slots=True)
class Candidate:
    """The parts of a request that rules and selectors evaluate.

    Attributes:
        resource: with its subresource, if any (`pods/status`).
        labels: of the object; for updates, of either state.
        namespace_labels: of its namespace; None if unknown, in which case they are not checked.
    """

    operation: Operation
    resource: GroupVersionResource
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] | None = None
    namespaced: bool = True


def why_not_selected(entry: JsonObject, candidate: Candidate) -> str | None:
    """Return why a webhook is not called, or None if it is.

    Match conditions are not evaluated: they only narrow the selection.
    """
    if not any(_rule_fits(rule, candidate) for rule in maps_at(entry, "rules")):
        resource = candidate.resource
        group = f".{resource.group}" if resource.group else ""
        return f"no rule for {candidate.operation} of {resource.resource}{group}/{resource.version}"
    for missing in unmet(map_at(entry, "objectSelector"), candidate.labels):
        return f"the object's labels do not match: {missing}"
    if candidate.namespaced and candidate.namespace_labels is not None:
        for missing in unmet(map_at(entry, "namespaceSelector"), candidate.namespace_labels):
            return f"the namespace's labels do not match: {missing}"
    return None


def unmet(selector: JsonObject, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the requirements of a selector that the labels do not meet, in kubectl's notation."""
    for part in _requirements(selector):
        if not matches(part, labels):
            yield format_selector(part)


def _requirements(selector: JsonObject) -> Iterator[JsonObject]:
    for key, value in map_at(selector, "matchLabels").items():
        yield {"matchLabels": {key: value}}
    for expression in maps_at(selector, "matchExpressions"):
        yield {"matchExpressions": [expression]}


def _rule_fits(rule: JsonObject, candidate: Candidate) -> bool:
    resource = candidate.resource
    return (
        _listed(rule.get("operations"), candidate.operation)
        and _listed(rule.get("apiGroups"), resource.group)
        and _listed(rule.get("apiVersions"), resource.version)
        and _resource_listed(rule.get("resources"), resource.resource)
        and rule.get("scope", "*") in ("*", "Namespaced" if candidate.namespaced else "Cluster")
    )


def _listed(values: object, value: str) -> bool:
    return isinstance(values, list) and ("*" in values or value in values)


def _resource_listed(values: object, resource: str) -> bool:
    """Match a resource: `*` matches no subresource, but `*/*`, `pods/*` and `*/status` do."""
    if not isinstance(values, list):
        return False
    name, _, subresource = resource.partition("/")
    if not subresource:
        return bool({"*", "*/*", name} & set(values))
    return bool({"*/*", f"{name}/*", f"*/{subresource}", resource} & set(values))
