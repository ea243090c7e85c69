"""Placement of system components on their nodes, with tolerations for the taints of those nodes.

The taints come from the configuration and from the nodes: while a cluster's taints are being
changed, nodes with old and with new ones exist (spec 12 §7).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import orjson

from pergola.admission.draft import pointer
from pergola.admission.registration import Registration
from pergola.admission.review import Edit, Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.core_v1 import Toleration
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.kube.errors import KubeError
from pergola.resource_manager.webhooks.decoding import Undecodable, map_in, maps_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.edits import verdict
from pergola.resource_manager.webhooks.facts.taints import SystemTaints, Taint
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.subjects import PODS, refused

NAME: Final = "system-components-config.resources.gardener.cloud"
PATH: Final = "/webhooks/system-components-config"
SKIP: Final = "system-components-config.resources.gardener.cloud/skip"
CONSIDER: Final = "system-components-config.resources.gardener.cloud/consider"

_NODE_SELECTOR: Final = ("spec", "nodeSelector")
_SELECTOR_BECAUSE: Final = "webhooks.systemComponentsConfig.podNodeSelector contains it"
_TOLERATIONS: Final = ("spec", "tolerations")


_LEFT: Final = allowed(because="the DaemonSet decides where its pods run")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods; in a runtime cluster, only in labelled namespaces.

    The resource manager's own pods are excluded by name and not only by their skip label: a webhook
    that fails closed must not prevent its own server from starting.
    """
    asked = {CONSIDER: "true"} if installation.kind == "runtime" else None
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            namespace_selector=installation.namespaces(labels=asked),
            object_selector=installation.pods(absent(SKIP), managed=True),
        )
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    settings = config.system_components_config
    handler = SystemComponentsConfig(
        dependencies.lookups.system_taints,
        settings.pod_node_selector,
        settings.pod_tolerations,
        known=dependencies.lookups.known_taints,
    )
    return sharing(handler, registrations(dependencies.installation))


class SystemComponentsConfig:
    """The handler.

    Args:
        system_taints: called for each pod; a list is rendered only once.
        node_selector: added to the node selector of pods.
        tolerations: added to the tolerations of pods.
        known: returns the result of `system_taints` without waiting; None if it has to wait.
    """

    def __init__(
        self,
        system_taints: SystemTaints,
        node_selector: Mapping[str, str],
        tolerations: Iterable[Toleration] = (),
        *,
        known: Callable[[], Sequence[Taint] | None] = lambda: None,
    ) -> None:
        self._system_taints = system_taints
        self._known = known
        self._node_selector = {
            name: Edit("add", pointer((*_NODE_SELECTOR, name)), value, _SELECTOR_BECAUSE)
            for name, value in node_selector.items()
        }
        because = "webhooks.systemComponentsConfig.podTolerations contains it"
        self._configured = [_Desired(t.to_json(), because) for t in tolerations]
        self._taints: Sequence[Taint] | None = None
        self._desired: list[_Desired] = []

    async def __call__(self, request: Request) -> Verdict:
        """Place the pod, unless a DaemonSet does so."""
        return await PODS.answer_later(request, self._decide)

    def at_once(self, request: Request) -> Verdict | None:
        """Decide at once if the taints are known; else return None."""
        taints = self._known()
        if taints is None:
            return None
        return PODS.answer(request, lambda pod: self._place(pod, taints))

    async def _decide(self, pod: JsonObject) -> Verdict:
        if _is_of_daemon_set(pod):
            return _LEFT
        try:
            taints = await self._system_taints()
        except KubeError as error:
            return refused(error, "system-components-config: cannot list the nodes")
        return self._place(pod, taints)

    def _place(self, pod: JsonObject, taints: Sequence[Taint]) -> Verdict:
        if _is_of_daemon_set(pod):
            return _LEFT
        desired = self._with(taints)
        if not map_in(pod, "spec"):
            raise Undecodable(("spec",), "a map", None)
        chosen = map_in(pod, *_NODE_SELECTOR)
        return verdict(
            [*self._selecting(chosen), *_tolerating(maps_in(pod, *_TOLERATIONS), desired)],
            "node selector and tolerations are already set",
            warnings=tuple(self._overridden(chosen)),
        )

    def _with(self, taints: Sequence[Taint]) -> "list[_Desired]":
        """Return all tolerations to add; rendered again only after a change of nodes."""
        if taints is not self._taints:
            of_nodes = [
                _Desired(taint.toleration(), f"a node for system components has the taint {taint}")
                for taint in taints
            ]
            self._taints, self._desired = taints, [*self._configured, *of_nodes]
        return self._desired

    def _selecting(self, chosen: JsonObject) -> Iterator[Edit]:
        """Return the edits of the pod's node selector."""
        desired = self._node_selector
        if not chosen and desired:
            value: JsonObject = {name: edit.value for name, edit in desired.items()}
            yield Edit("add", pointer(_NODE_SELECTOR), value, _SELECTOR_BECAUSE)
            return
        for name, edit in desired.items():
            if chosen.get(name) != edit.value:
                yield edit

    def _overridden(self, chosen: JsonObject) -> Iterator[str]:
        """Return a warning for each label of the pod that is replaced."""
        for name, edit in self._node_selector.items():
            if chosen.get(name) not in (None, edit.value):
                yield (
                    f'spec.nodeSelector[{name}]: "{chosen[name]}" was replaced by "{edit.value}", '
                    "where system components run"
                )


class _Desired:
    """A toleration to add, and the edits that add it."""

    def __init__(self, toleration: JsonObject, because: str) -> None:
        at = pointer(_TOLERATIONS)
        self.identity = _identity(toleration)
        self.as_first = Edit("add", at, [toleration], because)
        self.as_next = Edit("add", f"{at}/-", toleration, because)


def _tolerating(present: Sequence[JsonObject], desired: Iterable[_Desired]) -> list[Edit]:
    """Remove duplicate tolerations, and append missing ones."""
    seen: set[bytes] = set()
    edits: list[Edit] = []
    for index, toleration in enumerate(present):
        identity = _identity(toleration)
        if identity in seen:
            at = pointer((*_TOLERATIONS, index))
            edits.append(Edit("remove", at, None, "the pod already has an equal toleration"))
        seen.add(identity)
    edits.reverse()  # from the end, so that removals do not shift the others
    for one in desired:
        if one.identity not in seen:
            edits.append(one.as_next if seen else one.as_first)
            seen.add(one.identity)
    return edits


def _identity(toleration: JsonObject) -> bytes:
    """Return a value that is equal for equal tolerations; empty fields count as absent."""
    filled = {name: value for name, value in toleration.items() if value not in ("", None)}
    return orjson.dumps(filled, option=orjson.OPT_SORT_KEYS)


def _is_of_daemon_set(pod: JsonObject) -> bool:
    return any(
        owner.get("apiVersion") == "apps/v1"
        and owner.get("kind") == "DaemonSet"
        and owner.get("controller") is True
        for owner in maps_in(pod, "metadata", "ownerReferences")
    )
