"""The CustomResourceDefinitions of other projects as components (spec 20 §11)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pergola.api.kinds import CRD
from pergola.api.objects import Identity, Key
from pergola.garden.components import volume_autoscaling
from pergola.garden.components.component import Component, Removable, Rendered, always
from pergola.garden.components.definitions import GROUPS, load
from pergola.garden.components.vertical_pod_autoscaler import objects as autoscaler
from pergola.garden.landscape import Landscape
from pergola.manifests.definitions import Group

_SUBJECTS: Final = {"vpa": "VPA", "istio": "Istio", "opentelemetry": "OpenTelemetry"}
_ABSENT: Final[Mapping[str, Callable[[Landscape], str | None]]] = {
    "vpa": autoscaler.absent,
    "pvc-autoscaler": volume_autoscaling.absent,
}


def tasks(group: Group) -> tuple[str, str]:
    """Return the names of the tasks that apply a group, and wait until it is served."""
    if group.key == "etcd":
        related = "ETCD-related custom resource definitions"
        return f"Deploying {related}", f"Waiting for {related}"
    of_subject = f"custom resource definitions for {_SUBJECTS.get(group.key, group.key)}"
    return f"Deploying {of_subject}", f"Waiting for {of_subject}"


def component(group: Group) -> Component:
    """Return the component of a group.

    Its definitions are never removed: another program may use them, and deleting one deletes all
    objects of its kind.
    """
    deploy, wait = tasks(group)
    return Component(
        name=f"{group.key}-crds",
        deploy=deploy,
        wait=wait,
        absent=_ABSENT.get(group.key, always),
        render=partial(_render, group),
        removable=Removable(),
        is_setup=True,
        limit=120.0,
    )


def _render(group: Group, landscape: Landscape) -> Rendered:
    del landscape
    return Rendered(direct=load(group))


CRDS: Final = {group.key: component(group) for group in GROUPS}
"""The components by the key of their group, in the order of their tasks."""

DELETED_GROUPS: Final = (
    "extensions",
    "prometheus-operator",
    "opentelemetry",
    "fluent-operator",
    "istio",
    "vpa",
    "etcd",
    "perses-operator",
    "victoria-operator",
)
"""The groups that are deleted with the Garden."""


def definitions_of(name: str) -> Removable | None:
    """Return the definitions of a component, or None if it is not one of these."""
    for group in GROUPS:
        if CRDS[group.key].name == name:
            keys = (Key("", definition) for definition in sorted(group.names))
            return Removable(direct=tuple(Identity(CRD, key) for key in keys))
    return None
