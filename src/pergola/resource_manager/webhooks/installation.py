"""For which namespaces and objects an installation registers its webhooks (spec 12 §2.1, §2.2).

The selectors are made here and nowhere else: one that forgets the resource manager's own pods lets
a cluster block its own start (spec 12, Beyond 8).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api import marks
from pergola.api.objects import JsonObject

SYSTEM_NAMESPACES: Final = ("kube-system", "kubernetes-dashboard")
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
STATIC_POD: Final = "static-pod"

Expression = JsonObject


@dataclass(frozen=True, slots=True)
class Installation:
    """Where an instance of the resource manager stands.

    Attributes:
        kind: `runtime` serves the cluster that it runs in, `target` serves another one (a shoot).
        prefix: of the instance's name, such as `virtual-garden-`.
        namespace: where its Service is.
        garden: whether the cluster of a runtime instance is the runtime of a garden.
        hvpa: whether the cluster whose API server calls the webhooks serves Hvpas.
    """

    kind: Literal["runtime", "target"]
    prefix: str = ""
    namespace: str = "garden"
    garden: bool = False
    hvpa: bool = False

    @property
    def name(self) -> str:
        """The value of the label `app` of its pods, and the name of its Service."""
        return f"{self.prefix}gardener-resource-manager"

    def namespaces(self, *further: Expression, labels: dict[str, str] | None = None) -> JsonObject:
        """NS of spec 12 §2.2: system namespaces of a target; control planes in a runtime."""
        if self.kind == "target":
            return selector(one_of(NAMESPACE_NAME, SYSTEM_NAMESPACES), *further, labels=labels)
        return selector(
            exists(marks.ROLE),
            none_of(NAMESPACE_NAME, SYSTEM_NAMESPACES),
            *further,
            labels=labels,
        )

    def objects(self, *further: Expression, managed: bool = False) -> JsonObject:
        """An object selector; with `managed`, M of spec 12 §2.2: only our objects in a target."""
        labels = {marks.MANAGED_BY: "gardener"} if managed and self.kind == "target" else None
        return selector(*further, labels=labels)

    def pods(self, *further: Expression, managed: bool = False, own: bool = False) -> JsonObject:
        """An object selector for the creation of pods: never static ones.

        Args:
            managed: only our pods in a target.
            own: whether also the resource manager's own pods. Only webhooks that cannot block
                (failure policy Ignore, or a selector that leaves our pods out) may say so.
        """
        parts = [*further]
        if not own:
            parts.append(none_of("app", [self.name]))
        parts.append(none_of(STATIC_POD, ["true"]))
        return self.objects(*parts, managed=managed)


def selector(*expressions: Expression, labels: dict[str, str] | None = None) -> JsonObject:
    """A LabelSelector; `{}` if nothing is asked for."""
    found: JsonObject = {}
    if labels:
        found["matchLabels"] = labels
    if expressions:
        found["matchExpressions"] = list(expressions)
    return found


def exists(key: str) -> Expression:
    """The label is there, with any value."""
    return {"key": key, "operator": "Exists"}


def absent(key: str) -> Expression:
    """The label is not there; skip labels work by presence."""
    return {"key": key, "operator": "DoesNotExist"}


def one_of(key: str, values: Sequence[str]) -> Expression:
    """The label has one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


def none_of(key: str, values: Sequence[str]) -> Expression:
    """The label has none of these values, or is not there."""
    return {"key": key, "operator": "NotIn", "values": list(values)}
