"""Assigned fields that a Service keeps (spec 10 §5.3)."""

from typing import Final

from pergola.api.objects import JsonObject, annotations_of, map_at, maps_at

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


def _keep_node_ports(spec: JsonObject, old: JsonObject) -> None:
    if not isinstance(spec.get("ports"), list):
        return
    spec["ports"] = [
        {**port, "nodePort": assigned} if (assigned := _assigned(port, old)) else port
        for port in maps_at(spec, "ports")
    ]


def _assigned(port: JsonObject, old: JsonObject) -> int:
    """Return a port's live node port, unless the manifest sets one; 0 without one."""
    if port.get("nodePort"):
        return 0
    found = 0
    for before in maps_at(old, "ports"):
        same_port, same_name = before.get("port") == port.get("port"), _same(before, port, "name")
        if not same_port and not same_name:
            continue
        found = before.get("nodePort") or 0
        if same_port and same_name and _same(before, port, "protocol", "TCP"):
            break  # TCP and UDP may use the same port number
    return found


def _same(before: JsonObject, port: JsonObject, field: str, default: str = "") -> bool:
    return bool((before.get(field) or default) == (port.get(field) or default))


def _keep_addresses(spec: JsonObject, old: JsonObject) -> None:
    if spec.get("clusterIP") != "None" and old.get("type") != "ExternalName":
        spec |= {"clusterIP": old["clusterIP"]} if old.get("clusterIP") else {}
    both_balanced = spec["type"] == "LoadBalancer" == old.get("type")
    both_local = spec.get("externalTrafficPolicy") == "Local" == old.get("externalTrafficPolicy")
    assigned = old.get("healthCheckNodePort")
    if both_balanced and both_local and assigned and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = assigned
