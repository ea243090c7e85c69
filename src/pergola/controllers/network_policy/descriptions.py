"""Descriptions of NetworkPolicies for their annotation (wording: spec 11 §4.4)."""

from collections.abc import Mapping, Sequence

from pergola.api.objects import JsonObject, map_at
from pergola.controllers.network_policy.annotations import PolicyPort
from pergola.controllers.network_policy.service import ServiceView
from pergola.kube.selectors import format_selector


def ingress_description(
    service: ServiceView, port: PolicyPort, peer: str, callers: JsonObject, kind: str
) -> str:
    """Return the description of the policy for the Service's pods."""
    who = f"pods running in namespace {peer}"
    if kind == "ingress":
        who = f"ingress controller pods running in the {peer} namespace"
    return (
        f"Allows ingress {port.protocol} traffic to port {port.port} for {_target(service)} "
        f"from {who} labeled with {_selection(callers)}."
    )


def egress_description(
    service: ServiceView, port: PolicyPort, peer: str, callers: JsonObject, kind: str
) -> str:
    """Return the description of the policy for the callers' pods."""
    where = f"the {peer} namespace" if kind == "ingress" else f"namespace {peer}"
    return (
        f"Allows egress {port.protocol} traffic to port {port.port} from pods running in {where} "
        f"labeled with {_selection(callers)} to {_target(service)}."
    )


def world_description(service: ServiceView, ports: Sequence[PolicyPort]) -> str:
    """Return the description of the policy that allows ingress from everywhere."""
    named = " ".join(p.protocol if p.port is None else f"{p.protocol}/{p.port}" for p in ports)
    return f"Allows ingress traffic from everywhere to ports [{named}] for {_target(service)}."


def go_map(labels: Mapping[str, str]) -> str:
    """Return labels as the descriptions print them: `map[a:b c:d]`."""
    return f"map[{' '.join(f'{key}:{labels[key]}' for key in sorted(labels))}]"


def _target(service: ServiceView) -> str:
    return f"pods selected by the {service.key} service selector"


def _selection(selector: JsonObject) -> str:
    labels = go_map(map_at(selector, "matchLabels"))
    expressions = selector.get("matchExpressions")
    if not expressions:
        return labels
    return f"{labels} and {format_selector({'matchExpressions': expressions})}"
