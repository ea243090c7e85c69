"""The groups of definitions: one file each, and one task of a Garden that applies it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import brotli
import orjson

from pergola.api.objects import JsonObject, name_of

_FOLDER: Final = files(__package__)


class DefinitionsMissing(Exception):
    """A file lacks definitions of its group; the text names them."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Definitions that are applied together.

    Attributes:
        key: Its name, and that of its file.
        kinds: The plural names of the kinds, by API group.
    """

    key: str
    kinds: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        """The names of the definitions."""
        return frozenset(
            f"{plural}.{group}" for group, plurals in self.kinds.items() for plural in plurals
        )

    @property
    def file_name(self) -> str:
        """The name of the file with them."""
        return f"{self.key}.json.br"


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

_SHOOT_EXTENSIONS: Final = (
    "containerruntimes",
    "controlplanes",
    "operatingsystemconfigs",
    "selfhostedshootexposures",
    "workers",
)

GROUPS: Final = (
    Group("fluent-operator", {"fluentbit.fluent.io": _FLUENT}),
    Group("prometheus-operator", {"monitoring.coreos.com": _PROMETHEUS}),
    Group("perses-operator", {"perses.dev": _PERSES}),
    Group("victoria-operator", {"operator.victoriametrics.com": ("vlsingles",)}),
    Group("extensions", {"extensions.gardener.cloud": _EXTENSIONS}),
    Group("etcd", {"druid.gardener.cloud": _DRUID}),
    Group("vpa", {"autoscaling.k8s.io": _AUTOSCALERS}),
    Group("istio", _ISTIO),
    Group("opentelemetry", {"opentelemetry.io": _OPEN_TELEMETRY}),
    Group("pvc-autoscaler", {"autoscaling.gardener.cloud": ("persistentvolumeclaimautoscalers",)}),
)
"""The groups of a Garden, in the order of its tasks."""

SHOOT_EXTENSIONS: Final = Group(
    "shoot-extensions", {"extensions.gardener.cloud": _SHOOT_EXTENSIONS}
)
"""Those that only Seeds need, for Shoots; Pergola's own API has the others."""


def load(group: Group, directory: Traversable = _FOLDER) -> tuple[JsonObject, ...]:
    """Return the definitions of a group.

    They are not kept: decompressing and parsing all of them takes 0.05 s, keeping them 23 MB.

    Raises:
        DefinitionsMissing: The file does not have all of them.
    """
    file = directory / group.file_name
    found = tuple(orjson.loads(brotli.decompress(file.read_bytes())))
    missing = group.names - {name_of(definition) for definition in found}
    if missing:
        raise DefinitionsMissing(f"{file.name} lacks {', '.join(sorted(missing))}")
    return found
