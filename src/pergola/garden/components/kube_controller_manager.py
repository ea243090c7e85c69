"""The kube-controller-manager of the virtual cluster, which has no nodes (spec 20 §15.4)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.objects import JsonObject
from pergola.bundle.versions import Version
from pergola.garden.components import (
    authorities,
    monitoring,
    service_account_key,
    task_names,
    virtual_access,
)
from pergola.garden.components.api_server.part import Part, feature_gates, mounted_secret
from pergola.garden.components.component import Component, Managed, Rendered, Target
from pergola.garden.components.conventions import GARDEN_SCRAPES, NON_ROOT, TO_DNS, open_ports
from pergola.garden.components.priority_classes import P300
from pergola.garden.components.removal import removable
from pergola.garden.components.tls import CIPHER_SUITES
from pergola.garden.components.virtual_apis import runtime_config
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    HEADLESS,
    KUBE_SYSTEM,
    account,
    disruption_budget,
    manifest,
    port,
    requests,
    selector,
    service,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount
from pergola.secrets_manager import Certificate, Options, SigningCA

_ENABLED: Final = ("*", "bootstrapsigner", "tokencleaner")
_OF_NODES: Final = (
    "attachdetach",
    "cloud-node-lifecycle",
    "endpoint",
    "ephemeral-volume",
    "nodeipam",
    "nodelifecycle",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "pv-protection",
    # It writes tokens that never expire; in a garden, TokenRequest is the only source of tokens.
    "serviceaccount-token",
    "ttl",
)
_SINCE: Final[Mapping[str, Version]] = {
    "device-taint-eviction-controller": Version(1, 33),
    "podcertificaterequest-cleaner-controller": Version(1, 34),
    "podgroup-protection-controller": Version(1, 36),
    "resourcepoolstatusrequest-controller": Version(1, 36),
}
# Controllers that fail without an API, by its group (without the domain) and version.
_OF_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    "apps/v1": ("daemonset", "deployment", "replicaset", "statefulset"),
    "authentication/v1": ("attachdetach", "persistentvolume-expander"),
    "authorization/v1": ("csrapproving",),
    "autoscaling/v1": ("horizontalpodautoscaling",),
    "autoscaling/v2": ("horizontalpodautoscaling",),
    "batch/v1": ("cronjob", "job", "ttl-after-finished"),
    "certificates/v1": ("csrapproving", "csrcleaner", "csrsigning"),
    "coordination/v1": ("nodelifecycle", "storage-version-gc"),
    "discovery/v1": ("endpointslice", "endpointslicemirroring"),
    "policy/v1": ("disruption",),
    "rbac/v1": ("clusterrole-aggregation",),
}


def controllers_flag(landscape: Landscape) -> str:
    """Return the value of `--controllers`."""
    return ",".join([*_ENABLED, *(f"-{name}" for name in sorted(set(_disabled(landscape))))])


def _disabled(landscape: Landscape) -> Iterator[str]:
    yield from _OF_NODES
    yield from (name for name, since in _SINCE.items() if landscape.version.release >= since)
    for api, is_served in runtime_config(landscape).items():
        if not is_served:
            yield from _OF_APIS.get(_short(api), ())


def _short(api: str) -> str:
    """Return the key of `_OF_APIS`, such as `rbac/v1` for `rbac.authorization.k8s.io/v1`."""
    group, _, version = api.partition("/")
    return f"{group.partition('.')[0]}/{version}"


NAME: Final = "kube-controller-manager"
DEPLOYMENT: Final = f"virtual-garden-{NAME}"

_PORT: Final = 10257
_CERTIFICATE: Final = "kube-controller-manager-server"
_LABELS: Final = {"app": "kubernetes", "role": "controller-manager"}
_CONTROL_PLANE: Final = {"gardener.cloud/role": "controlplane"}
_READABLE: Final = 0o644
_PRIVATE: Final = 0o640
_CA: Final = "/srv/kubernetes/ca"
_CLIENT_CA: Final = "/srv/kubernetes/ca-client"
_SIGNING_KEY: Final = "/srv/kubernetes/service-account-key"
_SERVER: Final = "/var/lib/kube-controller-manager-server"


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of its metrics endpoint, and its kubeconfig."""
    hosts = authorities.service_hosts(DEPLOYMENT, NAMESPACE)
    config = Certificate(
        name=_CERTIFICATE, common_name=NAME, hosts=hosts, for_server=True, publish_ca=False
    )
    yield Credential(config, Options(signed_by=SigningCA(authorities.CLUSTER)))
    yield virtual_access.generic_kubeconfig(landscape)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and its permissions in the virtual cluster."""
    target = target_reference("Deployment", DEPLOYMENT)
    return Rendered(
        direct=(
            virtual_access.access_secret(NAME),
            _service(),
            _deployment(landscape),
            disruption_budget(DEPLOYMENT, NAMESPACE, _LABELS),
            vertical_pod_autoscaler(f"{DEPLOYMENT}-vpa", NAMESPACE, target, NAME),
            _service_monitor(),
            monitoring.rule_file(monitoring.GARDEN, DEPLOYMENT),
        ),
        managed=(
            Managed(
                name=f"shoot-core-{NAME}",
                objects=(_binding(),),
                target=Target.VIRTUAL,
                condition="VirtualComponentsHealthy",
                keep=True,
            ),
        ),
    )


def _deployment(landscape: Landscape) -> JsonObject:
    """Return the Deployment, without replicas: the webhook for high availability sets them."""
    pods = {
        **_LABELS,
        **_CONTROL_PLANE,
        "maintenance.gardener.cloud/restart": "true",
        **TO_DNS,
        **virtual_access.TO_VIRTUAL_API_SERVER,
    }
    return manifest(
        "apps/v1",
        "Deployment",
        DEPLOYMENT,
        namespace=NAMESPACE,
        labels={**_LABELS, **_CONTROL_PLANE, HIGH_AVAILABILITY: "controller"},
        spec={
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "template": {"metadata": {"labels": pods}, "spec": _pod(landscape)},
        },
    )


def _pod(landscape: Landscape) -> JsonObject:
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": P300,
        "securityContext": NON_ROOT,
        "containers": [_container(landscape)],
        "volumes": [
            *_files(landscape).volumes,
            virtual_access.kubeconfig_volume(landscape, NAME),
        ],
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "name": NAME,
        "image": landscape.kubernetes_image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": [f"/usr/local/bin/{NAME}", *command(landscape)],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "scheme": "HTTPS", "port": _PORT},
            "initialDelaySeconds": 15,
            "periodSeconds": 10,
            "timeoutSeconds": 15,
            "successThreshold": 1,
            "failureThreshold": 2,
        },
        "ports": [port("metrics", _PORT)],
        "resources": requests(cpu="10m", memory="30M"),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [
            *_files(landscape).mounts,
            kubeconfig_mount(),
        ],
    }


def command(landscape: Landscape) -> list[str]:
    """Return the command line of the container."""
    settings = landscape.virtual.kubernetes.kube_controller_manager
    return [
        *(f"--{prefix}kubeconfig={KUBECONFIG_PATH}" for prefix in _CLIENTS),
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        f"--cluster-name={NAMESPACE}",
        *(
            f"--cluster-signing-{signer}-{kind}-file={_CLIENT_CA}/ca.{suffix}"
            for signer in ("kube-apiserver-client", "legacy-unknown")
            for kind, suffix in (("cert", "crt"), ("key", "key"))
        ),
        f"--cluster-signing-duration={format_duration(settings.certificate_signing_duration)}",
        "--concurrent-endpoint-syncs=15",
        "--concurrent-gc-syncs=250",
        "--concurrent-service-endpoint-syncs=15",
        f"--controllers={controllers_flag(landscape)}",
        "--concurrent-namespace-syncs=100",
        "--concurrent-resource-quota-syncs=100",
        "--resource-quota-sync-period=1m0s",
        *feature_gates(settings.feature_gates),
        f"--root-ca-file={_CA}/bundle.crt",
        f"--service-account-private-key-file={_SIGNING_KEY}/id_rsa",
        f"--secure-port={_PORT}",
        f"--service-cluster-ip-range={','.join(landscape.virtual.networking.services)}",
        "--profiling=false",
        f"--tls-cert-file={_SERVER}/tls.crt",
        f"--tls-private-key-file={_SERVER}/tls.key",
        f"--tls-cipher-suites={','.join(CIPHER_SUITES)}",
        "--use-service-account-credentials=true",
        "--v=2",
    ]


_CLIENTS: Final = ("authentication-", "authorization-", "")


def _files(landscape: Landscape) -> Part:
    """Return the volumes and mounts with its authorities, keys and certificate."""
    known = landscape.credentials
    files = (
        mounted_secret("ca", _CA, known.bundle_name(authorities.CLUSTER), mode=_READABLE),
        mounted_secret("ca-client", _CLIENT_CA, known.name(authorities.CLIENT), mode=_PRIVATE),
        mounted_secret(
            "service-account-key",
            _SIGNING_KEY,
            known.name(service_account_key.NAME),
            mode=_PRIVATE,
        ),
        mounted_secret("server", _SERVER, known.name(_CERTIFICATE), mode=_PRIVATE),
    )
    return sum(files, Part())


def _service() -> JsonObject:
    return service(
        DEPLOYMENT,
        NAMESPACE,
        _LABELS,
        service_port("metrics", _PORT),
        labels=_LABELS,
        annotations=open_ports(GARDEN_SCRAPES, _PORT),
        **HEADLESS,
    )


def _service_monitor() -> JsonObject:
    metrics = ("rest_client_requests_total", "process_max_fds", "process_open_fds")
    scraped = monitoring.endpoint(
        "metrics",
        targets=[monitoring.SERVICE_LABELS],
        metrics=monitoring.kept_metrics(*metrics),
    )
    return monitoring.service_monitor(
        monitoring.GARDEN, DEPLOYMENT, _LABELS, monitoring.authenticated(scraped)
    )


def _binding() -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return manifest(
        f"{group}/v1",
        "ClusterRoleBinding",
        f"gardener.cloud:target:{NAME}",
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": f"system:{NAME}"},
        subjects=[account(NAME, KUBE_SYSTEM)],
    )


KUBE_CONTROLLER_MANAGER: Final = Component(
    name=DEPLOYMENT,
    deploy="Deploying Kubernetes Controller Manager",
    after=(task_names.API_SERVER_READY,),
    credentials=credentials,
    render=render,
    limit=180.0,
    removable=removable(
        f"Deployment {DEPLOYMENT}",
        f"PodDisruptionBudget {DEPLOYMENT}",
        f"VerticalPodAutoscaler {DEPLOYMENT}-vpa",
        f"ServiceMonitor garden-{DEPLOYMENT}",
        f"PrometheusRule garden-{DEPLOYMENT}",
        f"Service {DEPLOYMENT}",
        "Secret shoot-access-kube-controller-manager",
        managed=("shoot-core-kube-controller-manager",),
    ),
)
