"""Assigned fields that a Service keeps (spec 10 §5.3)."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue, annotations_of, map_at, maps_at

_OPENSTACK: Final = "loadbalancer.openstack.org"


def merge_service(merged: JsonObject, live: JsonObject) -> JsonObject:
    """Return the Service with its assigned addresses and ports."""
    kept = {k: v for k, v in annotations_of(live).items() if k.startswith(_OPENSTACK)}
    if kept:
        metadata = map_at(merged, "metadata")
        annotations = {**kept, **annotations_of(merged)}
        merged = {**merged, "metadata": {**metadata, "annotations": annotations}}
    old, spec = map_at(live, "spec"), {**map_at(merged, "spec")}
    spec["type"] = spec.get("type") or "ClusterIP"
    if spec["type"] in ("LoadBalancer", "NodePort"):
        _keep_node_ports(spec, old)
        if not spec.get("loadBalancerIP") and old.get("loadBalancerIP"):
            spec["loadBalancerIP"] = old["loadBalancerIP"]
    if spec["type"] == "LoadBalancer" == old.get("type") and old.get("loadBalancerClass"):
        # Webhooks of load balancer controllers set it; it cannot be removed.
        spec.setdefault("loadBalancerClass", old["loadBalancerClass"])
    if spec["type"] != "ExternalName":
        _keep_addresses(spec, old)
    return {**merged, "spec": spec}


def kept_address(manifest: JsonObject, live: JsonObject) -> str:
    """Return the address that a Service keeps although its manifest has another; empty if none."""
    desired, spec = map_at(manifest, "spec"), map_at(live, "spec")
    if "ExternalName" in (desired.get("type"), spec.get("type")):
        return ""
    address, kept = desired.get("clusterIP") or "", str(spec.get("clusterIP") or "")
    if address == "None":
        return ""  # the server refuses the update
    is_followed = address == kept if address else kept != "None"
    return "" if is_followed else kept


def _keep_node_ports(spec: JsonObject, old: JsonObject) -> None:
    """Give ports their live node ports: by name and number, then by name, then by number.

    A port that another port of the same protocol has, or that the manifest sets, is not given away.
    """
    if not isinstance(spec.get("ports"), list):
        return
    ports = [{**port} for port in maps_at(spec, "ports")]
    taken = {(_protocol(port), port["nodePort"]) for port in ports if port.get("nodePort")}
    for fields in _AGREEMENTS:
        for port in ports:
            if port.get("nodePort"):
                continue
            for before in maps_at(old, "ports"):
                assigned = before.get("nodePort")
                free = assigned and (_protocol(port), assigned) not in taken
                if free and all(_value(before, name) == _value(port, name) for name in fields):
                    port["nodePort"] = assigned
                    taken.add((_protocol(port), assigned))
                    break
    spec["ports"] = ports


_AGREEMENTS: Final = (
    ("name", "port", "protocol"),
    ("name", "port"),
    ("name", "protocol"),
    ("name",),
    ("port", "protocol"),
    ("port",),
)


def _value(port: JsonObject, field: str) -> JsonValue:
    return _protocol(port) if field == "protocol" else port.get(field) or ""


def _protocol(port: JsonObject) -> JsonValue:
    return port.get("protocol") or "TCP"


def _keep_addresses(spec: JsonObject, old: JsonObject) -> None:
    if spec.get("clusterIP") != "None" and old.get("type") != "ExternalName":
        spec |= {"clusterIP": old["clusterIP"]} if old.get("clusterIP") else {}
    both_balanced = spec["type"] == "LoadBalancer" == old.get("type")
    both_local = spec.get("externalTrafficPolicy") == "Local" == old.get("externalTrafficPolicy")
    assigned = old.get("healthCheckNodePort")
    if both_balanced and both_local and assigned and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = assigned
