"""The CustomResourceDefinitions that a runtime cluster needs, by the tasks that apply them.

They are those of other projects (spec 20 §11). Each group is one file of data: a JSON list,
compressed with Brotli, beside a note about its origin and licence.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from typing import Final

import brotli
import orjson

from pergola.api.objects import JsonObject, name_of
from pergola.operator.components import pvc_autoscaler
from pergola.operator.components.component import Component, Removable, Rendered, always
from pergola.operator.components.vertical_pod_autoscaler import objects as autoscaler
from pergola.operator.garden.landscape import Landscape


class DefinitionsMissing(Exception):
    """A file lacks definitions of its group; the text names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Definitions that are applied together.

    Attributes:
        key: The name of its file.
        subject: What the tasks are named after.
        kinds: The plural names of the kinds, by API group.
        absent: Returns why a Garden does not need them, or None. They are never removed: another
            program may use them.
    """

    key: str
    subject: str
    kinds: Mapping[str, tuple[str, ...]]
    absent: Callable[[Landscape], str | None] = field(default=always)

    @property
    def names(self) -> frozenset[str]:
        """The names of the definitions."""
        return frozenset(
            f"{plural}.{group}" for group, plurals in self.kinds.items() for plural in plurals
        )

    @property
    def tasks(self) -> tuple[str, str]:
        """The names of the tasks that apply them, and wait until they are served."""
        if self.key == "etcd":
            related = "ETCD-related custom resource definitions"
            return f"Deploying {related}", f"Waiting for {related}"
        of_subject = f"custom resource definitions for {self.subject}"
        return f"Deploying {of_subject}", f"Waiting for {of_subject}"


_PROMETHEUS: Final = (
    "alertmanagerconfigs",
    "alertmanagers",
    "podmonitors",
    "probes",
    "prometheusagents",
    "prometheuses",
    "prometheusrules",
    "scrapeconfigs",
    "servicemonitors",
    "thanosrulers",
)
_FLUENT: Final = (
    "clusterfilters",
    "clusterfluentbitconfigs",
    "clusterinputs",
    "clustermultilineparsers",
    "clusteroutputs",
    "clusterparsers",
    "collectors",
    "filters",
    "fluentbitconfigs",
    "fluentbits",
    "multilineparsers",
    "outputs",
    "parsers",
)
_ISTIO: Final = {
    "extensions.istio.io": ("wasmplugins",),
    "networking.istio.io": (
        "destinationrules",
        "envoyfilters",
        "gateways",
        "proxyconfigs",
        "serviceentries",
        "sidecars",
        "virtualservices",
        "workloadentries",
        "workloadgroups",
    ),
    "security.istio.io": (
        "authorizationpolicies",
        "peerauthentications",
        "requestauthentications",
    ),
    "telemetry.istio.io": ("telemetries",),
}
_OPEN_TELEMETRY: Final = (
    "clusterobservabilities",
    "instrumentations",
    "opampbridges",
    "opentelemetrycollectors",
    "targetallocators",
)
_PERSES: Final = ("perses", "persesdashboards", "persesdatasources", "persesglobaldatasources")
_DRUID: Final = ("etcds", "etcdcopybackupstasks", "etcdopstasks")
_EXTENSIONS: Final = ("backupbuckets", "backupentries", "dnsrecords", "extensions")
_AUTOSCALERS: Final = ("verticalpodautoscalers", "verticalpodautoscalercheckpoints")

GROUPS: Final = (
    Group(key="fluent-operator", subject="fluent-operator", kinds={"fluentbit.fluent.io": _FLUENT}),
    Group(
        key="prometheus-operator",
        subject="prometheus-operator",
        kinds={"monitoring.coreos.com": _PROMETHEUS},
    ),
    Group(key="perses-operator", subject="perses-operator", kinds={"perses.dev": _PERSES}),
    Group(
        key="victoria-operator",
        subject="victoria-operator",
        kinds={"operator.victoriametrics.com": ("vlsingles",)},
    ),
    Group(key="extensions", subject="extensions", kinds={"extensions.gardener.cloud": _EXTENSIONS}),
    Group(key="etcd", subject="ETCD", kinds={"druid.gardener.cloud": _DRUID}),
    Group(
        key="vpa",
        subject="VPA",
        kinds={"autoscaling.k8s.io": _AUTOSCALERS},
        absent=autoscaler.absent,
    ),
    Group(key="istio", subject="Istio", kinds=_ISTIO),
    Group(
        key="opentelemetry", subject="OpenTelemetry", kinds={"opentelemetry.io": _OPEN_TELEMETRY}
    ),
    Group(
        key="pvc-autoscaler",
        subject="pvc-autoscaler",
        kinds={"autoscaling.gardener.cloud": ("persistentvolumeclaimautoscalers",)},
        absent=pvc_autoscaler.absent,
    ),
)


def load(group: Group, directory: Traversable) -> tuple[JsonObject, ...]:
    """Return the definitions of a group.

    Raises:
        DefinitionsMissing: The file does not have all of them.
    """
    file = directory / f"{group.key}.json.br"
    found = tuple(orjson.loads(brotli.decompress(file.read_bytes())))
    missing = group.names - {name_of(definition) for definition in found}
    if missing:
        raise DefinitionsMissing(f"{file.name} lacks {', '.join(sorted(missing))}")
    return found


def components(directory: Traversable) -> Iterator[Component]:
    """Yield a component for each group, with the definitions in a directory."""
    for group in GROUPS:
        deploy, wait = group.tasks
        yield Component(
            name=f"{group.key}-crds",
            deploy=deploy,
            wait=wait,
            absent=group.absent,
            render=partial(_render, load(group, directory)),
            removable=Removable(),
            is_setup=True,
            limit=120.0,
        )


def _render(definitions: tuple[JsonObject, ...], landscape: Landscape) -> Rendered:
    del landscape
    return Rendered(direct=definitions)
