"""Parts that the controllers of a control plane share (spec 31 §7.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import env, manifest, mount, projected, secret_files
from pergola.manifests.labels import HIGH_AVAILABILITY, TO_DNS, TO_PUBLIC_NETWORKS
from pergola.providers.aws.control_plane.credentials import WORKLOAD_IDENTITY_DIRECTORY

ORIGIN: Final = "extensions.gardener.cloud:provider-aws"
"""The prefix of names of roles in Shoots."""
CONTROLLER: Final = {HIGH_AVAILABILITY: "controller"}
"""A label of Deployments whose replicas depend on the failure tolerance."""
CONTROL_PLANE: Final = {"gardener.cloud/role": "controlplane"}
RESTARTED: Final = {"maintenance.gardener.cloud/restart": "true"}
"""A label of pods that are restarted in the maintenance of a Shoot."""
TO_SHOOT: Final = {
    **TO_DNS,
    **TO_PUBLIC_NETWORKS,
    "networking.resources.gardener.cloud/to-kube-apiserver-tcp-443": "allowed",
}
"""Labels of pods that reach AWS and the API server of their Shoot."""
TO_SEED: Final = {"networking.gardener.cloud/to-runtime-apiserver": "allowed"}
PRIORITY: Final = "gardener-system-300"
SCRAPED: Final = {"prometheus": "shoot"}
"""A label of the configuration of a Shoot's Prometheus."""
SCRAPE_TARGETS: Final = "networking.resources.gardener.cloud/from-all-scrape-targets-allowed-ports"

UNPRIVILEGED: Final = {"allowPrivilegeEscalation": False}
READ_ONLY: Final = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}

_CREDENTIALS_DIRECTORY: Final = "/srv/cloudprovider"
_FILE: Final = "credentialsFile"
_TOKEN: Final = "token"  # noqa: S105 - the key of a Secret
_VOLUME: Final = "cloudprovider"
_READABLE: Final = 0o644


@dataclass(frozen=True, slots=True)
class CredentialsOf:
    """How a controller gets the credentials for AWS.

    Attributes:
        volumes: none if the controller reads the Secret itself.
    """

    variables: Sequence[JsonObject]
    mounts: Sequence[JsonObject]
    volumes: Sequence[JsonObject]


def file_credentials(secret: str, *, workload_identity: bool) -> CredentialsOf:
    """Return a file with keys, or the token and the role that it gets.

    Args:
        secret: with the credentials.
    """
    if not workload_identity:
        variables = env(AWS_SHARED_CREDENTIALS_FILE=f"{_CREDENTIALS_DIRECTORY}/{_FILE}")
        return _mounted(secret, variables, _CREDENTIALS_DIRECTORY, _FILE)
    variables = env(
        AWS_WEB_IDENTITY_TOKEN_FILE=_from_secret(secret, "workloadIdentityTokenFile"),
        AWS_ROLE_ARN=_from_secret(secret, "roleARN"),
    )
    return _mounted(secret, variables, WORKLOAD_IDENTITY_DIRECTORY, _TOKEN)


def profile_credentials(secret: str, *, workload_identity: bool) -> CredentialsOf:
    """Return a file with keys, or with the role beside its token."""
    if not workload_identity:
        return file_credentials(secret, workload_identity=False)
    variables = env(AWS_SHARED_CREDENTIALS_FILE=f"{WORKLOAD_IDENTITY_DIRECTORY}/{_FILE}")
    return _mounted(secret, variables, WORKLOAD_IDENTITY_DIRECTORY, _TOKEN, _FILE)


def own_credentials(secret: str, *, workload_identity: bool) -> CredentialsOf:
    """Return what a controller needs that reads the Secret itself: at most the token."""
    if not workload_identity:
        return CredentialsOf((), (), ())
    return _mounted(secret, (), WORKLOAD_IDENTITY_DIRECTORY, _TOKEN)


def memory_autoscaler(name: str, deployment: str, *containers: str) -> JsonObject:
    """Return an autoscaler of the memory that containers request."""
    policies = [
        {
            "containerName": container,
            "controlledResources": ["memory"],
            "controlledValues": "RequestsOnly",
        }
        for container in containers
    ]
    return manifest(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        name,
        spec={
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            "resourcePolicy": {"containerPolicies": policies},
        },
    )


def service_monitor(
    name: str, labels: JsonObject, metrics: Sequence[str], **endpoint: object
) -> JsonObject:
    """Return what tells the Shoot's Prometheus to scrape the port `metrics` of a Service.

    Args:
        labels: of the Service.
        metrics: the names to keep, as regular expressions.
        endpoint: additional fields of the endpoint.
    """
    keep = {
        "action": "keep",
        "sourceLabels": ["__name__"],
        "regex": f"^({'|'.join(metrics)})$",
    }
    return manifest(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        f"shoot-{name}",
        labels=SCRAPED,
        spec={
            "selector": {"matchLabels": labels},
            "endpoints": [
                {
                    "port": "metrics",
                    **endpoint,
                    "relabelings": [
                        {"action": "labelmap", "regex": "__meta_kubernetes_service_label_(.+)"}
                    ],
                    "metricRelabelings": [keep],
                }
            ],
        },
    )


def _from_secret(secret: str, key: str) -> JsonObject:
    return {"secretKeyRef": {"name": secret, "key": key}}


def _mounted(
    secret: str, variables: Sequence[JsonObject], directory: str, *keys: str
) -> CredentialsOf:
    source = secret_files(secret, {key: key for key in keys}, optional=False)
    return CredentialsOf(
        variables,
        [mount(_VOLUME, directory, readOnly=True)],
        [projected(_VOLUME, source, mode=_READABLE)],
    )
