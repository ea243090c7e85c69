"""Objects that configure scrapes and rules of Prometheus (spec 20 §16.8).

Each object belongs to one Prometheus, which selects it by the label `prometheus` and whose name is
the prefix of the object's name.

Rules are files in Prometheus' own format, which `promtool check rules` reads: the folder
`prometheus_rules` has one for each PrometheusRule, with the name of the object. Only what is
generated from a table or shared by several Prometheuses is built in Python, by `record`: metering,
and the health of a Prometheus.
"""

from collections.abc import Container, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from pergola.api.objects import JsonObject, JsonValue
from pergola.garden.landscape import NAMESPACE
from pergola.kube.yaml import parse
from pergola.manifests import manifest, selector

GARDEN: Final = "garden"
LONGTERM: Final = "longterm"
SEED: Final = "seed"
AGGREGATE: Final = "aggregate"
CACHE: Final = "cache"

ACCESS: Final = "shoot-access-prometheus-garden"
"""The Secret with the garden Prometheus' token for metrics of the virtual cluster."""

_GROUP: Final = "monitoring.coreos.com"
_RULES: Final = files(__package__) / "prometheus_rules"


def keep(regex: str, *labels: str) -> JsonObject:
    """Return a relabeling that drops everything whose labels do not match."""
    return {"action": "keep", "regex": regex, "sourceLabels": list(labels)}


def drop(regex: str, *labels: str) -> JsonObject:
    """Return a relabeling that drops everything whose labels match."""
    return {"action": "drop", "regex": regex, "sourceLabels": list(labels)}


def replace(label: str, replacement: str = "", *labels: str, regex: str = "") -> JsonObject:
    """Return a relabeling that sets a label.

    Args:
        label: The label to set.
        replacement: Its value, which may refer to groups of the regex; the first by default.
        labels: The labels whose values, joined by `;`, must match.
        regex: Matches everything by default.
    """
    step: JsonObject = {"action": "replace", "targetLabel": label}
    given = {"replacement": replacement, "sourceLabels": list(labels), "regex": regex}
    return step | {field: value for field, value in given.items() if value}


def job(name: str) -> JsonObject:
    """Return a relabeling that sets the label `job`."""
    return replace("job", name)


def copy_labels(regex: str) -> JsonObject:
    """Return a relabeling that copies labels to names given by the first group of the regex."""
    return {"action": "labelmap", "regex": regex}


def drop_labels(regex: str) -> JsonObject:
    """Return a relabeling that removes labels whose names match."""
    return {"action": "labeldrop", "regex": regex}


SERVICE_LABELS: Final = copy_labels("__meta_kubernetes_service_label_(.+)")
POD_LABELS: Final = copy_labels("__meta_kubernetes_pod_label_(.+)")


def kept_metrics(*names: str) -> list[JsonObject]:
    """Return the relabeling that drops all other metrics.

    Args:
        names: Regular expressions.
    """
    return [keep("^(" + "|".join(names) + ")$", "__name__")]


def endpoint(
    port: str | int,
    *,
    metrics: Iterable[JsonObject] = (),
    targets: Iterable[JsonObject] = (),
    **settings: JsonValue,
) -> JsonObject:
    """Return an endpoint of a ServiceMonitor.

    Args:
        port: The name of a port of the Service, or the number of a port of its pods.
        metrics: Relabelings of metrics, such as those of `kept_metrics`.
        targets: Relabelings of targets.
        settings: Extra fields, such as `path`.
    """
    relabelings = {"metricRelabelings": list(metrics), "relabelings": list(targets)}
    return {
        "port" if isinstance(port, str) else "targetPort": port,
        **settings,
        **{field: steps for field, steps in relabelings.items() if steps},
    }


def authenticated(endpoint: JsonObject) -> JsonObject:
    """Return the same endpoint with the garden Prometheus' token, for servers that require it."""
    return {
        **endpoint,
        "scheme": "HTTPS",
        "tlsConfig": {"insecureSkipVerify": True},
        "authorization": {"credentials": {"name": ACCESS, "key": "token"}},
    }


def service_monitor(
    prometheus: str,
    name: str,
    services: Mapping[str, str],
    *endpoints: JsonObject,
    namespace: str = NAMESPACE,
) -> JsonObject:
    """Return a ServiceMonitor.

    Args:
        services: The labels that select Services.
    """
    spec: JsonObject = {"selector": selector(services), "endpoints": list(endpoints)}
    return _of(prometheus, "v1", "ServiceMonitor", name, namespace, spec)


def scrape_config(prometheus: str, name: str, spec: JsonObject) -> JsonObject:
    """Return a ScrapeConfig, for targets that a ServiceMonitor cannot describe."""
    return _of(prometheus, "v1alpha1", "ScrapeConfig", name, NAMESPACE, spec)


def services_of(*namespaces: str) -> list[JsonObject]:
    """Return the discovery of Services in some namespaces, for a ScrapeConfig."""
    return [{"role": "Service", "namespaces": {"names": list(namespaces)}}]


def static(*targets: str, **labels: str) -> list[JsonObject]:
    """Return targets with fixed addresses, for a ScrapeConfig."""
    fixed: JsonObject = {"targets": list(targets)}
    return [fixed | ({"labels": dict(labels)} if labels else {})]


def rule_file(prometheus: str, name: str, *, without: Container[str] = ()) -> JsonObject:
    """Return the PrometheusRule with the groups of its file.

    Args:
        without: The names of alerts to omit.
    """
    groups = (
        {**group, "rules": [each for each in group["rules"] if each.get("alert") not in without]}
        for group in _groups(f"{prometheus}-{name}.yaml")
    )
    return prometheus_rule(prometheus, name, *groups)


@cache
def _groups(file: str) -> tuple[JsonObject, ...]:
    content = parse((_RULES / file).read_bytes())
    return msgspec.convert(content, dict[str, tuple[JsonObject, ...]])["groups"]


def prometheus_rule(prometheus: str, name: str, *groups: JsonObject) -> JsonObject:
    """Return a PrometheusRule with groups of alerts and recording rules."""
    return _of(prometheus, "v1", "PrometheusRule", name, NAMESPACE, {"groups": list(groups)})


def rules(name: str, *each: JsonObject, interval: str = "") -> JsonObject:
    """Return a group of rules, which are evaluated in order.

    Args:
        interval: The time between evaluations, if it is not the default.
    """
    group: JsonObject = {"name": name, "rules": list(each)}
    return group | ({"interval": interval} if interval else {})


def record(series: str, expr: str, **labels: str) -> JsonObject:
    """Return a recording rule: a series with the value of an expression."""
    found: JsonObject = {"record": series, "expr": expr}
    return found | ({"labels": dict(labels)} if labels else {})


def _of(
    prometheus: str, version: str, kind: str, name: str, namespace: str, spec: JsonObject
) -> JsonObject:
    return manifest(
        f"{_GROUP}/{version}",
        kind,
        f"{prometheus}-{name}",
        namespace=namespace,
        labels={"prometheus": prometheus},
        spec=spec,
    )
