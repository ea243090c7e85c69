"""VerticalPodAutoscalers, for Shoots that have the autoscaler (spec 40 §5.5)."""

from collections.abc import Mapping

from pergola.api.objects import JsonObject
from pergola.providers.networking.calico.render.compose import obj


def vertical_pod_autoscaler(
    target: str, kind: str, container: str, least: Mapping[str, int | str]
) -> JsonObject:
    """Sets the requests of one container, in place where that is possible; not of its sidecars."""
    policy: JsonObject = {"containerName": container, "controlledValues": "RequestsOnly"}
    if least:
        policy["minAllowed"] = dict(least)
    spec: JsonObject = {
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
        "resourcePolicy": {"containerPolicies": [policy, {"containerName": "*", "mode": "Off"}]},
    }
    return obj("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", container, spec=spec)
