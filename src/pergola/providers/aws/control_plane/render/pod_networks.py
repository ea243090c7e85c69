"""Controllers of pod networks: routes to nodes, and IPv6 prefixes of nodes (spec 31 §7.1).

Both read the credentials through the API of the seed. Without work they have no replicas, so that
they still exist to clean up when they are switched off.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    account,
    cluster_role,
    disruption_budget,
    http_probe,
    manifest,
    port,
    requests,
    role,
    rule,
    selector,
    service_account,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount, kubeconfig_volume
from pergola.providers.aws.control_plane.credentials import SECRET_NAME
from pergola.providers.aws.control_plane.render.conventions import (
    CONTROL_PLANE,
    CONTROLLER,
    ORIGIN,
    PRIORITY,
    RESTARTED,
    TO_SEED,
    TO_SHOOT,
    UNPRIVILEGED,
    memory_autoscaler,
    own_credentials,
)
from pergola.providers.aws.control_plane.render.values import IPV4, IPV6, Values
from pergola.providers.aws.control_plane.route_controller import route_controller_replicas

ROUTES: Final = "aws-custom-route-controller"
PREFIXES: Final = "aws-ipam-controller"
_METRICS_PORT: Final = 10258
_HEALTH_PORT: Final = 10259
_NODE_BITS_IPV4: Final = 24
_NODE_BITS_IPV6: Final = 64
_BOTH: Final = 2
_WRITE: Final = ("create", "patch", "update")


def seed_objects(values: Values) -> list[JsonObject]:
    """Return the objects of both controllers on the seed."""
    replicas = values.plan.replicas()
    routes = route_controller_replicas(values.config, values.families, awake=replicas)
    route_arguments = [f"--pod-network-cidr={values.pods}", f"--region={values.region}"]
    return [
        *_controller(values, ROUTES, routes, route_arguments, [rule("", ["secrets"], ["get"])]),
        *_controller(
            values,
            PREFIXES,
            replicas if values.needs_ipam else 0,
            [f"--region={values.region}"],
            [rule("", ["secrets"], ["get"], names=[SECRET_NAME])],
            last=_prefix_arguments(values),
        ),
    ]


def shoot_objects(values: Values) -> list[JsonObject]:
    """Return the permissions in the Shoot of the controllers that are in use."""
    routes = [
        *_permissions(f"{ORIGIN}:{ROUTES}", ROUTES, _ROUTE_RULES),
        *_leader_role(f"{ORIGIN}:{ROUTES}", ROUTES),
    ]
    prefixes = [
        *_permissions(PREFIXES, PREFIXES, _PREFIX_RULES),
        *_leader_role(PREFIXES, PREFIXES),
    ]
    return [
        *(routes if values.config.uses_route_controller else []),
        *(prefixes if values.needs_ipam else []),
    ]


_EVENTS: Final = rule("", ["events"], _WRITE)
_ROUTE_RULES: Final = (
    rule("", ["nodes"], ["get", "list", "watch"]),
    rule("", ["nodes/status"], ["get", "patch", "update"]),
    _EVENTS,
    rule("events.k8s.io", ["events"], ["create", "get", "list", "patch", "update", "watch"]),
)
_PREFIX_RULES: Final = (
    rule("", ["nodes"], ["get", "list", "watch", "create", "patch", "update"]),
    _EVENTS,
)


def _prefix_arguments(values: Values) -> list[str]:
    families = values.families
    mode = "dual-stack" if len(families) == _BOTH else "ipv6" if IPV6 in families else "ipv4"
    primary = families[0] if len(families) == _BOTH else IPV4
    size = values.part("kubernetes", "kubeControllerManager").get("nodeCIDRMaskSize")
    ipv4 = size if size is not None and families == [IPV4] else _NODE_BITS_IPV4
    ipv6 = size if size is not None and families == [IPV6] else _NODE_BITS_IPV6
    return [
        f"--cluster-cidrs={values.ipv4_pods}",
        f"--mode={mode}",
        f"--primary-ip-family={primary.lower()}",
        f"--node-cidr-mask-size-ipv4={ipv4}",
        f"--node-cidr-mask-size-ipv6={ipv6}",
        "--log-level=info",
    ]


def _controller(
    values: Values,
    name: str,
    replicas: int,
    arguments: list[str],
    rules: list[JsonObject],
    last: list[str] | None = None,
) -> list[JsonObject]:
    labels = {"app": "kubernetes", "role": name}
    return [
        service_account(name, values.name),
        *role(name, values.name, rules, account(name, values.name)),
        _deployment(values, name, labels, replicas, _command(values, name, arguments, last or [])),
        disruption_budget(name, values.name, labels),
        memory_autoscaler(f"{name}-vpa", name, name),
    ]


def _command(values: Values, name: str, arguments: list[str], last: list[str]) -> list[str]:
    return [
        f"/{name}",
        "--control-kubeconfig=inClusterConfig",
        f"--cluster-name={values.name}",
        f"--health-probe-port={_HEALTH_PORT}",
        f"--metrics-port={_METRICS_PORT}",
        f"--namespace={values.name}",
        *arguments,
        f"--target-kubeconfig={KUBECONFIG_PATH}",
        "--leader-election=true",
        f"--leader-election-namespace={KUBE_SYSTEM}",
        *last,
    ]


def _deployment(
    values: Values, name: str, labels: dict[str, str], replicas: int, command: list[str]
) -> JsonObject:
    credentials = own_credentials(SECRET_NAME, workload_identity=values.workload_identity)
    container: JsonObject = {
        "name": name,
        "image": values.images(name),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "ports": [port("metrics", _METRICS_PORT), port("healthz", _HEALTH_PORT)],
        "livenessProbe": http_probe(
            "/healthz",
            _HEALTH_PORT,
            initialDelaySeconds=30,
            periodSeconds=10,
            timeoutSeconds=5,
            successThreshold=1,
            failureThreshold=3,
        ),
        "readinessProbe": http_probe("/readyz", _HEALTH_PORT, initialDelaySeconds=5),
        "resources": requests(memory="50Mi"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [kubeconfig_mount(), *credentials.mounts],
    }
    pod: JsonObject = {
        "serviceAccountName": name,
        "priorityClassName": PRIORITY,
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [kubeconfig_volume(values.plan.kubeconfig, name), *credentials.volumes],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        name,
        namespace=values.name,
        labels={**labels, **CONTROLLER},
        spec={
            "replicas": replicas,
            "revisionHistoryLimit": 1,
            "strategy": {"type": "Recreate"},
            "selector": selector(labels),
            "template": {
                "metadata": {
                    "labels": {**labels, **CONTROL_PLANE, **RESTARTED, **TO_SHOOT, **TO_SEED},
                    "annotations": values.secret_checksum,
                },
                "spec": pod,
            },
        },
    )


def _permissions(name: str, user: str, rules: tuple[JsonObject, ...]) -> list[JsonObject]:
    return cluster_role(name, rules, account(user, KUBE_SYSTEM))


def _leader_role(name: str, user: str) -> list[JsonObject]:
    rules = [
        rule(
            "coordination.k8s.io", ["leases"], ["get", "update"], names=[f"{user}-leader-election"]
        ),
        rule("coordination.k8s.io", ["leases"], ["create"]),
        _EVENTS,
    ]
    return role(name, KUBE_SYSTEM, rules, account(user, KUBE_SYSTEM))
