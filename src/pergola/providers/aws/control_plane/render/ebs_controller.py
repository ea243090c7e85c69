"""Volumes in EBS: the CSI driver's controllers on the seed, and snapshots (spec 31 §7.1).

The driver creates volumes in AWS; the containers beside it are the common controllers of CSI, which
watch the Shoot and call the driver through a socket.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    disruption_budget,
    empty_dir,
    env,
    from_pod,
    manifest,
    mount,
    port,
    requests,
    selector,
    service,
    service_port,
)
from pergola.manifests.services import HEADLESS
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount, kubeconfig_volume
from pergola.providers.aws.control_plane.credentials import SECRET_NAME
from pergola.providers.aws.control_plane.render.conventions import (
    CONTROL_PLANE,
    CONTROLLER,
    PRIORITY,
    READ_ONLY,
    SCRAPE_TARGETS,
    TO_SHOOT,
    UNPRIVILEGED,
    CredentialsOf,
    memory_autoscaler,
    profile_credentials,
    service_monitor,
)
from pergola.providers.aws.control_plane.render.values import Values

NAME: Final = "csi-driver-controller"
SNAPSHOTS: Final = "csi-snapshot-controller"
_LABELS: Final = {"app": "csi", "role": "controller"}
_SNAPSHOT_LABELS: Final = {"app": SNAPSHOTS, "role": "controller"}
_SNAPSHOT_CONTAINER: Final = "aws-csi-snapshot-controller"
_SNAPSHOT_PRIORITY: Final = "gardener-system-200"
_SOCKETS: Final = "/var/lib/csi/sockets/pluginproxy"
_SOCKET: Final = f"{_SOCKETS}/csi.sock"
_METRICS_PORT: Final = 3301
_FROM_WORLD: Final = "networking.resources.gardener.cloud/from-world-to-ports"
_METRICS: Final = (
    "aws_ebs_csi_api_request_duration_seconds_(bucket|sum|count)",
    "aws_ebs_csi_api_request_errors_total",
    "aws_ebs_csi_api_request_throttles_total",
    "aws_ebs_csi_ec2_detach_pending_seconds(_total)?",
)
_KUBECONFIG: Final = f"--kubeconfig={KUBECONFIG_PATH}"
_LEADER_NAMESPACE: Final = f"--leader-election-namespace={KUBE_SYSTEM}"
_QUICK: Final = ("--kube-api-qps=100", "--kube-api-burst=200")


class _Sidecar(NamedTuple):
    """A controller of CSI: also the name of its account and its image."""

    name: str
    memory: str
    arguments: Sequence[str]
    variables: Sequence[JsonObject]


def seed_objects(values: Values) -> list[JsonObject]:
    """Return the objects on the seed."""
    sidecars = _sidecars(values)
    names = ("driver", *(each.name for each in sidecars[1:]), "liveness-probe", sidecars[0].name)
    containers = [f"aws-csi-{name.removeprefix('csi-')}" for name in names]
    port_number = _METRICS_PORT
    return [
        _deployment(values, sidecars),
        service(
            NAME,
            values.name,
            _LABELS,
            service_port("metrics", port_number),
            labels=_LABELS,
            annotations={
                SCRAPE_TARGETS: f'[{{"port":{port_number},"protocol":"TCP"}}]',
                _FROM_WORLD: f'[{{"port":{port_number},"protocol":"TCP"}}]',
            },
            **HEADLESS,
        ),
        disruption_budget(NAME, values.name, _LABELS),
        memory_autoscaler(f"{NAME}-vpa", NAME, *containers),
        service_monitor(NAME, _LABELS, _METRICS),
        _snapshot_deployment(values),
        disruption_budget(SNAPSHOTS, values.name, _SNAPSHOT_LABELS),
        memory_autoscaler(f"{SNAPSHOTS}-vpa", SNAPSHOTS, _SNAPSHOT_CONTAINER),
    ]


def _sidecars(values: Values) -> list[_Sidecar]:
    address = env(ADDRESS=_SOCKET)
    common = ["--csi-address=$(ADDRESS)", _KUBECONFIG]
    leading = ["--leader-election=true", _LEADER_NAMESPACE]
    return [
        _Sidecar(
            "csi-volume-modifier",
            "50Mi",
            ["--v=2", *common, "--leader-election", _LEADER_NAMESPACE],
            [
                *address,
                *env(POD_NAME=from_pod("metadata.name"), POD_NAMESPACE=KUBE_SYSTEM),
            ],
        ),
        _Sidecar(
            "csi-provisioner",
            "38Mi",
            [
                *common,
                f"--volume-name-prefix=pv-{values.name}",
                "--extra-create-metadata=true",
                "--default-fstype=ext4",
                *leading,
                *_QUICK,
                "--worker-threads=100",
                "--retry-interval-max=10m",
                "--strict-topology",
                "--v=5",
                *values.volume_class_gates,
            ],
            address,
        ),
        _Sidecar(
            "csi-attacher",
            "36Mi",
            [
                *common,
                "--leader-election",
                _LEADER_NAMESPACE,
                "--v=5",
                "--timeout=60s",
                "--retry-interval-max=3m",
                *_QUICK,
                "--worker-threads=100",
            ],
            address,
        ),
        _Sidecar(
            "csi-snapshotter",
            "36Mi",
            [
                "--csi-address=$(CSI_ENDPOINT)",
                _KUBECONFIG,
                "--leader-election",
                _LEADER_NAMESPACE,
                f"--snapshot-name-prefix={values.name}",
                "--extra-create-metadata",
                *_QUICK,
                "--worker-threads=100",
                "--retry-interval-max=30m",
            ],
            env(CSI_ENDPOINT=_SOCKET),
        ),
        _Sidecar(
            "csi-resizer",
            "32Mi",
            [
                *common,
                *leading,
                "--handle-volume-inuse-error=false",
                "--v=5",
                "--extra-modify-metadata",
                "--timeout=60s",
                *_QUICK,
                "--workers=100",
                "--retry-interval-max=10m",
                *values.volume_class_gates,
            ],
            address,
        ),
    ]


def _deployment(values: Values, sidecars: Sequence[_Sidecar]) -> JsonObject:
    credentials = profile_credentials(SECRET_NAME, workload_identity=values.workload_identity)
    kubeconfigs = [
        kubeconfig_volume(values.plan.kubeconfig, each.name, name=f"kubeconfig-{each.name}")
        for each in sidecars
    ]
    pod: JsonObject = {
        "automountServiceAccountToken": False,
        "priorityClassName": PRIORITY,
        "containers": [
            _driver(values, credentials),
            *(_sidecar(values, each) for each in sidecars),
            _liveness_probe(values),
        ],
        "volumes": [empty_dir("socket-dir"), *credentials.volumes, *kubeconfigs],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=values.name,
        labels={**_LABELS, **CONTROLLER},
        spec={
            "replicas": values.plan.replicas(),
            "revisionHistoryLimit": 1,
            "selector": selector(_LABELS),
            "template": {
                "metadata": {
                    "labels": {**_LABELS, **CONTROL_PLANE, **TO_SHOOT},
                    "annotations": values.secret_checksum,
                },
                "spec": pod,
            },
        },
    )


def _driver(values: Values, credentials: CredentialsOf) -> JsonObject:
    return {
        "name": "aws-csi-driver",
        "image": values.images("csi-driver"),
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "controller",
            "--endpoint=$(CSI_ENDPOINT)",
            f"--k8s-tag-cluster-id={values.name}",
            "--logtostderr",
            "--v=5",
            "--batching=true",
            f"--http-endpoint=0.0.0.0:{_METRICS_PORT}",
        ],
        "env": [
            *env(CSI_ENDPOINT=f"unix://{_SOCKET}"),
            *credentials.variables,
            *env(AWS_REGION=values.region),
        ],
        "ports": [port("healthz", 9808), port("metrics", _METRICS_PORT)],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "healthz"},
            "initialDelaySeconds": 10,
            "periodSeconds": 10,
            "timeoutSeconds": 3,
            "failureThreshold": 5,
        },
        "resources": requests(memory="50Mi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [*credentials.mounts, mount("socket-dir", _SOCKETS)],
    }


def _sidecar(values: Values, sidecar: _Sidecar) -> JsonObject:
    return {
        "name": f"aws-{sidecar.name}",
        "image": values.images(sidecar.name),
        "imagePullPolicy": "IfNotPresent",
        "args": list(sidecar.arguments),
        "env": list(sidecar.variables),
        "resources": requests(memory=sidecar.memory),
        "securityContext": READ_ONLY,
        "volumeMounts": [
            mount("socket-dir", _SOCKETS),
            kubeconfig_mount(f"kubeconfig-{sidecar.name}"),
        ],
    }


def _liveness_probe(values: Values) -> JsonObject:
    return {
        "name": "aws-csi-liveness-probe",
        "image": values.images("csi-liveness-probe"),
        "args": ["--csi-address=/csi/csi.sock"],
        "resources": requests(memory="32Mi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [mount("socket-dir", "/csi")],
    }


def _snapshot_deployment(values: Values) -> JsonObject:
    container: JsonObject = {
        "name": _SNAPSHOT_CONTAINER,
        "image": values.images(SNAPSHOTS),
        "imagePullPolicy": "IfNotPresent",
        "args": [_KUBECONFIG, "--leader-election=true", _LEADER_NAMESPACE],
        "resources": requests(memory="32Mi"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [kubeconfig_mount()],
    }
    pod: JsonObject = {
        "automountServiceAccountToken": False,
        "priorityClassName": _SNAPSHOT_PRIORITY,
        "containers": [container],
        "volumes": [kubeconfig_volume(values.plan.kubeconfig, SNAPSHOTS)],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        SNAPSHOTS,
        namespace=values.name,
        labels={**_SNAPSHOT_LABELS, **CONTROLLER},
        spec={
            "replicas": values.plan.replicas(),
            "revisionHistoryLimit": 1,
            "selector": selector(_SNAPSHOT_LABELS),
            "template": {"metadata": {"labels": {**_SNAPSHOT_LABELS, **TO_SHOOT}}, "spec": pod},
        },
    )
