"""The groups of definitions: one file each, and one task of a Garden that applies it."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.definitions import Group, load_definitions

_FOLDER: Final = files(__package__)


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

    Raises:
        DefinitionsMissing: The file does not have all of them.
    """
    return load_definitions(group, directory)
