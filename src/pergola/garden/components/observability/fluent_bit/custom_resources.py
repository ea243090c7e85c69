"""The custom resources that process logs of the garden's own components."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.fluent_bit.resources import (
    cluster_filter,
    cluster_input,
    cluster_parser,
    to_collector,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    PORT as COLLECTOR_PORT,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    SERVICE as COLLECTOR,
)
from pergola.garden.landscape import Landscape

NAME: Final = "fluent-operator-custom-resources-garden"

_ISO: Final = "%Y-%m-%dT%H:%M:%S.%L%z"
_UNITS: Final = ("kubelet", "containerd")


@dataclass(frozen=True, slots=True)
class Format:
    """A format of log lines.

    Attributes:
        regex: A regular expression whose groups name the fields; empty for JSON.
        time: The format of the time.
        time_key: The field with the time.
    """

    regex: str
    time: str
    time_key: str = "time"


_KLOG: Final = Format(
    r"^(?<severity>\w)(?<time>\d{4} [^\s]*)\s+(?<pid>\d+)\s+(?<source>[^ \]]+)\] (?<log>.*)$",
    "%m%d %H:%M:%S.%L",
)
_PARSERS: Final = {
    "backup-restore": Format(
        r'^time="(?<time>\d{4}-\d{2}-\d{2}T[^"]*)"\s+level=(?<severity>\w+)\smsg="(?<log>.*)"',
        "%Y-%m-%dT%H:%M:%S%z",
    ),
    "etcd": Format(
        r"^(?<time>\d{4}-\d{2}-\d{2}\s+[^ ]*)\s+(?<severity>\w+)\s+\|\s+"
        r"(?<source>[^ :]*):\s+(?<log>.*)",
        "%Y-%m-%d %H:%M:%S.%L",
    ),
    "curator": Format(
        r"^level=(?<severity>\w+)\s+caller=(?<source>.*?)\s+"
        r"ts=(?<time>\d{4}-\d{2}-\d{2}[Tt]{1}\d{2}:\d{2}:\d{2}\.\d+\S+?)\S*?\s+(?<log>.*)$",
        _ISO,
    ),
    "vali": Format(
        r"^level=(?<severity>\w+)\s+"
        r"ts=(?<time>\d{4}-\d{2}-\d{2}[Tt]{1}\d{2}:\d{2}:\d{2}\.\d+\S+?)\S*?\s+"
        r"caller=(?<source>.*?)\s+(?<log>.*)$",
        _ISO,
    ),
    "vlsingle": Format(
        r"^(?<time>\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}\.\d+\S*)\s+"
        r"(?<severity>\w+)\s+(?<log>.*)$",
        _ISO,
    ),
    "gardener-resource-manager": Format("", "%Y-%m-%dT%H:%M:%S.%L", "ts"),
    "kube-apiserver": _KLOG,
    "kube-controller-manager": _KLOG,
    "kube-state-metrics": _KLOG,
    "virtual-garden-istio-basic-auth-server": _KLOG,
    "vpa": _KLOG,
}
_RENAMED: Final = {"level": "severity", "logger": "source", "msg": "log"}
_FILTERS: Final = {
    "addons-nginx-ingress-controller": (
        "addons-nginx-ingress-controller*nginx-ingress-controller*",
        "kube-apiserver",
    ),
    "etcd--backup-restore": ("etcd*backup-restore*", "backup-restore"),
    "etcd--etcd": ("etcd*etcd*", "etcd"),
    "gardener-resource-manager": (
        "gardener-resource-manager*gardener-resource-manager*",
        "gardener-resource-manager",
    ),
    "kube-apiserver--kube-apiserver": ("kube-apiserver*kube-apiserver*", "kube-apiserver"),
    "kube-controller-manager": (
        "kube-controller-manager*kube-controller-manager*",
        "kube-controller-manager",
    ),
    "kube-state-metrics": ("kube-state-metrics*kube-state-metrics*", "kube-state-metrics"),
    "vali--curator": ("vali*curator*", "curator"),
    "vali--vali": ("vali*vali*", "vali"),
    "victoria-logs--vlsingle": ("vlsingle*victoria-logs*", "vlsingle"),
    "virtual-garden-istio-basic-auth-server": (
        "virtual-garden-istio-basic-auth-server*istio-basic-auth-server*",
        "virtual-garden-istio-basic-auth-server",
    ),
    "vpa": ("vpa-*", "vpa"),
}
"""The pattern of pods and containers, and the parser, of each filter."""


def render(landscape: Landscape) -> Rendered:
    """Return filters and parsers of components, inputs from the journal, and the output."""
    objects = (
        *(cluster_parser(f"{name}-parser", _parser(each)) for name, each in _PARSERS.items()),
        *(_filter(name, *each) for name, each in _FILTERS.items()),
        *(resource for unit in _UNITS for resource in _journal(unit)),
        _output(),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _parser(found: Format) -> JsonObject:
    time = {"timeKey": found.time_key, "timeFormat": found.time}
    return {"regex": {"regex": found.regex, **time}} if found.regex else {"json": time}


def _filter(name: str, match: str, parser: str) -> JsonObject:
    steps: list[JsonObject] = [
        {"parser": {"keyName": "log", "parser": f"{parser}-parser", "reserveData": True}}
    ]
    if not _PARSERS[parser].regex:
        steps.append({"modify": {"rules": [{"rename": dict(_RENAMED)}]}})
    return cluster_filter(name, f"kubernetes.*{match}", *steps)


def _journal(unit: str) -> list[JsonObject]:
    """Return the input of a system service's logs, and the filter that adds its name."""
    source = {
        "tag": f"systemd.{unit}",
        "path": "/var/log/journal",
        "readFromTail": "on",
        "systemdFilter": [f"_SYSTEMD_UNIT={unit}.service"],
    }
    named = {"recordModifier": {"records": ["hostname ${NODE_NAME}", f"unit {unit}"]}}
    return [
        cluster_input(f"systemd-{unit}", {"systemd": source}),
        cluster_filter(f"systemd-{unit}", f"systemd.{unit}.*", named),
    ]


def _output() -> JsonObject:
    """Return the output of pods' logs: the garden's collector, plus a Shoot's in its namespace."""
    return to_collector(
        "opentelemetry",
        "kubernetes.*",
        Origin="seed",
        ShootType="otlp_grpc",
        DynamicHostPath='{"kubernetes": {"namespace_name": "namespace"}}',
        DynamicHostPrefix=f"{COLLECTOR}.",
        DynamicHostSuffix=f".svc.cluster.local:{COLLECTOR_PORT}",
        DynamicHostRegex="^shoot-",
        FallbackToTagWhenMetadataIsMissing="true",
        TagKey="tag",
        SendLogsToSeedWhenShootIsInHibernatedState="false",
        SendLogsToShootWhenIsInDeletionState="false",
    )


FLUENT_OPERATOR_CUSTOM_RESOURCES: Final = Component(
    name=NAME,
    deploy="Deploying fluent-operator CustomResources",
    render=render,
    limit=120.0,
)
