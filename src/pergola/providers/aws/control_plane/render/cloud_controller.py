"""The cloud controller manager: nodes and Services of type LoadBalancer (spec 31 §7.1)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extensions.control_planes import data_checksum
from pergola.manifests import (
    KUBE_SYSTEM,
    account,
    config_map_volume,
    disruption_budget,
    env,
    flag,
    https_probe,
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
from pergola.providers.aws.control_plane.cloud_provider import (
    CONFIG_MAP,
    KEY,
    cloud_controller_arguments,
)
from pergola.providers.aws.control_plane.credentials import SECRET_NAME
from pergola.providers.aws.control_plane.render.conventions import (
    CONTROL_PLANE,
    CONTROLLER,
    ORIGIN,
    PRIORITY,
    RESTARTED,
    SCRAPE_TARGETS,
    SCRAPED,
    TO_SHOOT,
    UNPRIVILEGED,
    file_credentials,
    memory_autoscaler,
    service_monitor,
)
from pergola.providers.aws.control_plane.render.values import Values

NAME: Final = "cloud-controller-manager"
SERVER: Final = "cloud-controller-manager-server"
"""The name of the credential that it serves with."""
CONTAINER: Final = "aws-cloud-controller-manager"
_LABELS: Final = {"app": "kubernetes", "role": NAME}
_PORT: Final = 10258
_CONFIG_DIRECTORY: Final = "/etc/kubernetes/cloudprovider"
_SERVER_DIRECTORY: Final = "/var/lib/cloud-controller-manager-server"
_CIPHERS: Final = (
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
)
_METRICS: Final = ("rest_client_requests_total", "process_max_fds", "process_open_fds")


def seed_objects(values: Values, config_map: JsonObject) -> list[JsonObject]:
    """Return the objects on the seed.

    Args:
        config_map: with the configuration file.
    """
    return [
        _deployment(values, config_map),
        service(
            NAME,
            values.name,
            _LABELS,
            service_port("metrics", _PORT),
            labels=_LABELS,
            annotations={SCRAPE_TARGETS: f'[{{"port":{_PORT},"protocol":"TCP"}}]'},
            **HEADLESS,
        ),
        disruption_budget(NAME, values.name, _LABELS),
        memory_autoscaler(f"{NAME}-vpa", NAME, CONTAINER),
        service_monitor(
            NAME,
            _LABELS,
            _METRICS,
            scheme="https",
            honorLabels=False,
            tlsConfig={"insecureSkipVerify": True},
            authorization={
                "credentials": {"name": "shoot-access-prometheus-shoot", "key": "token"}
            },
        ),
        _alert(),
    ]


def shoot_objects() -> list[JsonObject]:
    """Return its permissions in the Shoot, which it needs until the Shoot is gone."""
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    }
    binding = manifest(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        f"{ORIGIN}:{NAME}",
        annotations={"resources.gardener.cloud/keep-object": "true"},
        roleRef=reference,
        subjects=[account(NAME, KUBE_SYSTEM)],
    )
    return [binding]


def _deployment(values: Values, config_map: JsonObject) -> JsonObject:
    credentials = file_credentials(SECRET_NAME, workload_identity=values.workload_identity)
    checksums = {
        **values.secret_checksum,
        f"checksum/configmap-{CONFIG_MAP}": data_checksum(config_map),
    }
    container: JsonObject = {
        "name": CONTAINER,
        "image": values.images(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": _command(values),
        "env": [*credentials.variables, *env(AWS_REGION=values.region)],
        "ports": [port("metrics", _PORT)],
        "livenessProbe": https_probe(
            "/healthz",
            _PORT,
            initialDelaySeconds=15,
            periodSeconds=10,
            timeoutSeconds=15,
            successThreshold=1,
            failureThreshold=2,
        ),
        "resources": requests(memory="100Mi"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            kubeconfig_mount(),
            mount(SERVER, _SERVER_DIRECTORY),
            *credentials.mounts,
            mount(CONFIG_MAP, _CONFIG_DIRECTORY),
        ],
    }
    pod: JsonObject = {
        "automountServiceAccountToken": False,
        "priorityClassName": PRIORITY,
        "containers": [container],
        "volumes": [
            kubeconfig_volume(values.plan.kubeconfig, NAME),
            {"name": SERVER, "secret": {"secretName": values.plan.secret_of(SERVER)}},
            *credentials.volumes,
            config_map_volume(CONFIG_MAP, CONFIG_MAP),
        ],
    }
    labels = {**_LABELS, **CONTROL_PLANE, **RESTARTED, **TO_SHOOT}
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
            "template": {"metadata": {"labels": labels, "annotations": checksums}, "spec": pod},
        },
    )


def _command(values: Values) -> list[str]:
    manager = values.config.cloud_controller_manager
    gates = manager.feature_gates if manager is not None else {}
    chosen = ",".join(f"{gate}={flag(is_on)}" for gate, is_on in sorted(gates.items()))
    return [
        "/bin/aws-cloud-controller-manager",
        "--allocate-node-cidrs=false",
        "--cloud-provider=aws",
        f"--cloud-config={_CONFIG_DIRECTORY}/{KEY}",
        f"--cluster-cidr={values.pods}",
        f"--cluster-name={values.name}",
        "--concurrent-service-syncs=10",
        *cloud_controller_arguments(values.plan.infrastructure),
        *([f"--feature-gates={chosen}"] if chosen else []),
        f"--kubeconfig={KUBECONFIG_PATH}",
        f"--authentication-kubeconfig={KUBECONFIG_PATH}",
        f"--authorization-kubeconfig={KUBECONFIG_PATH}",
        "--leader-elect=true",
        f"--secure-port={_PORT}",
        f"--tls-cert-file={_SERVER_DIRECTORY}/tls.crt",
        f"--tls-private-key-file={_SERVER_DIRECTORY}/tls.key",
        f"--tls-cipher-suites={','.join(_CIPHERS)}",
        "--use-service-account-credentials",
        "--v=2",
    ]


def _alert() -> JsonObject:
    rule: JsonObject = {
        "alert": "CloudControllerManagerDown",
        "expr": f'absent(up{{job="{NAME}"}} == 1)',
        "for": "15m",
        "labels": {
            "service": NAME,
            "severity": "critical",
            "type": "seed",
            "visibility": "all",
        },
        "annotations": {
            "summary": "Cloud controller manager is down.",
            "description": (
                "New nodes do not become usable, and Services of type LoadBalancer get no address."
            ),
        },
    }
    return manifest(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        f"shoot-{NAME}",
        labels=SCRAPED,
        spec={"groups": [{"name": f"{NAME}.rules", "rules": [rule]}]},
    )
