"""The namespaces and objects for which an installation registers webhooks (spec 12 §2.1, §2.2).

All selectors are built here: a selector that includes the resource manager's own pods would block
the start of a cluster (spec 12, Beyond 8).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api import marks
from pergola.api.objects import JsonObject, Key

SYSTEM_NAMESPACES: Final = ("kube-system", "kubernetes-dashboard")
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
STATIC_POD: Final = "static-pod"

Expression = JsonObject


@dataclass(frozen=True, slots=True)
class Installation:
    """The installation of a resource manager.

    Attributes:
        kind: `runtime` serves the cluster that it runs in, `target` another one (a shoot).
        prefix: the prefix of the instance's name, such as `virtual-garden-`.
        namespace: the namespace of its Service.
        garden: whether the runtime cluster belongs to a garden.
        hvpa: whether the cluster that calls the webhooks serves Hvpas.
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

    @property
    def service(self) -> Key:
        """The Service of its webhook server."""
        return Key(self.namespace, self.name)

    def namespaces(self, *extra: Expression, labels: dict[str, str] | None = None) -> JsonObject:
        """Select system namespaces of a target, or control planes of a runtime (§2.2 NS)."""
        if self.kind == "target":
            return selector(one_of(NAMESPACE_NAME, SYSTEM_NAMESPACES), *extra, labels=labels)
        return selector(
            exists(marks.ROLE),
            none_of(NAMESPACE_NAME, SYSTEM_NAMESPACES),
            *extra,
            labels=labels,
        )

    def objects(self, *extra: Expression, managed: bool = False) -> JsonObject:
        """Select objects; with `managed`, only managed ones in a target (§2.2 M)."""
        labels = {marks.MANAGED_BY: "gardener"} if managed and self.kind == "target" else None
        return selector(*extra, labels=labels)

    def pods(self, *extra: Expression, managed: bool = False, own: bool = False) -> JsonObject:
        """Select pods, except static ones.

        Args:
            managed: only managed pods in a target.
            own: include the resource manager's own pods. Only for webhooks that cannot block: those
                with failure policy Ignore, or with another selector that excludes these pods.
        """
        parts = [*extra]
        if not own:
            parts.append(none_of("app", [self.name]))
        parts.append(none_of(STATIC_POD, ["true"]))
        return self.objects(*parts, managed=managed)


def selector(*expressions: Expression, labels: dict[str, str] | None = None) -> JsonObject:
    """Return a LabelSelector; `{}` without requirements."""
    found: JsonObject = {}
    if labels:
        found["matchLabels"] = labels
    if expressions:
        found["matchExpressions"] = list(expressions)
    return found


def exists(key: str) -> Expression:
    """Require the label, with any value."""
    return {"key": key, "operator": "Exists"}


def absent(key: str) -> Expression:
    """Require the absence of the label; skip labels work with any value."""
    return {"key": key, "operator": "DoesNotExist"}


def one_of(key: str, values: Sequence[str]) -> Expression:
    """Require one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


def none_of(key: str, values: Sequence[str]) -> Expression:
    """Require none of these values, or that the label is absent."""
    return {"key": key, "operator": "NotIn", "values": list(values)}
