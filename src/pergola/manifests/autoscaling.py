"""VerticalPodAutoscalers, for clusters that have the autoscaler."""

from collections.abc import Mapping, Sequence

from pergola.api.objects import JsonObject
from pergola.manifests.objects import manifest


def vertical_pod_autoscaler(
    name: str,
    namespace: str,
    target: JsonObject,
    container: str,
    least: Mapping[str, int | str] | None = None,
    *,
    most: Mapping[str, int | str] | None = None,
    resources: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return an autoscaler that sets the requests of one container and ignores sidecars.

    Args:
        target: the workload, as returned by `target_reference`.
        least: the minimum amounts, such as `{"memory": "100Mi"}`.
        most: the maximum amounts.
        resources: the resources that it controls; CPU and memory if empty.
    """
    policy: JsonObject = {"containerName": container, "controlledValues": "RequestsOnly"}
    if resources:
        policy["controlledResources"] = list(resources)
    if least:
        policy["minAllowed"] = dict(least)
    if most:
        policy["maxAllowed"] = dict(most)
    return manifest(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        name,
        namespace=namespace,
        labels=labels,
        spec={
            "targetRef": dict(target),
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            "resourcePolicy": {
                "containerPolicies": [policy, {"containerName": "*", "mode": "Off"}]
            },
        },
    )


def target_reference(kind: str, name: str) -> JsonObject:
    """Return a reference to a workload of `apps/v1`."""
    return {"apiVersion": "apps/v1", "kind": kind, "name": name}
