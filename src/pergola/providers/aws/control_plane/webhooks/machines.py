"""The driver for machines in AWS, beside machine-controller-manager (spec 31 §8)."""

from typing import Final

from pergola.api.objects import JsonObject, namespace_of
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY, KUBECONFIG_PATH
from pergola.providers.aws.control_plane.credentials import SECRET_NAME, WORKLOAD_IDENTITY_DIRECTORY
from pergola.providers.aws.control_plane.webhooks.edits import POD, at, with_item

DRIVER: Final = "machine-controller-manager-provider-aws"
"""The container, and its image."""
_PORT: Final = 10259
_TOKEN: Final = "workload-identity"  # noqa: S105 - the name of a volume


def with_driver(
    obj: JsonObject, image: str, *, is_self_hosted: bool, workload_identity: bool
) -> JsonObject:
    """Return the Deployment of machine-controller-manager with the driver as its sidecar.

    Args:
        is_self_hosted: whether the nodes belong to the cluster that runs the Deployment.
        workload_identity: whether the driver gets a role by a token, instead of keys.
    """
    sidecar = _driver(namespace_of(obj), image, is_self_hosted, workload_identity)

    def adapted(pod: JsonObject) -> JsonObject:
        pod = {**pod, "containers": with_item(pod.get("containers"), "name", sidecar)}
        if workload_identity:
            pod["volumes"] = with_item(pod.get("volumes"), "name", _token())
        return pod

    return at(obj, POD, adapted)


def with_driver_policy(obj: JsonObject) -> JsonObject:
    """Return the VPA of machine-controller-manager with a policy for the driver."""
    policy = {"containerName": DRIVER, "controlledValues": "RequestsOnly"}

    def adapted(spec: JsonObject) -> JsonObject:
        resources = spec.get("resourcePolicy")
        known = resources if isinstance(resources, dict) else {}
        policies = with_item(known.get("containerPolicies"), "containerName", policy)
        return {**spec, "resourcePolicy": {**known, "containerPolicies": policies}}

    return at(obj, ("spec",), adapted)


def _driver(
    namespace: str, image: str, is_self_hosted: bool, workload_identity: bool
) -> JsonObject:
    target = "none" if is_self_hosted else KUBECONFIG_PATH
    mounts: list[JsonObject] = []
    if not is_self_hosted:
        mounts.append({"name": "kubeconfig", "mountPath": KUBECONFIG_DIRECTORY, "readOnly": True})
    if workload_identity:
        mounts.append({"name": _TOKEN, "mountPath": WORKLOAD_IDENTITY_DIRECTORY})
    return {
        "name": DRIVER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "--control-kubeconfig=inClusterConfig",
            "--kube-api-qps=100",
            "--kube-api-burst=200",
            "--machine-creation-timeout=20m",
            "--machine-drain-timeout=2h",
            "--machine-health-timeout=10m",
            "--machine-safety-apiserver-statuscheck-timeout=30s",
            "--machine-safety-apiserver-statuscheck-period=1m",
            "--machine-safety-orphan-vms-period=30m",
            f"--namespace={namespace}",
            f"--port={_PORT}",
            f"--target-kubeconfig={target}",
            "--v=3",
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": _PORT, "scheme": "HTTP"},
            "initialDelaySeconds": 30,
            "timeoutSeconds": 5,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "ports": [{"name": "providermetrics", "containerPort": _PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False},
        **({"volumeMounts": mounts} if mounts else {}),
    }


def _token() -> JsonObject:
    """Return the volume with the token, which the kubelet keeps up to date."""
    secret = {"name": SECRET_NAME, "items": [{"key": "token", "path": "token"}]}
    return {"name": _TOKEN, "projected": {"sources": [{"secret": secret}]}}
