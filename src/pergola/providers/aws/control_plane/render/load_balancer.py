"""The AWS load balancer controller: load balancers for Services and Ingresses (spec 31 §7).

It always has a Deployment; without replicas while it is disabled, so that its webhooks can go.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    account,
    cluster_role,
    http_probe,
    manifest,
    mount,
    port,
    requests,
    role,
    rule,
    selector,
    service,
    service_account,
    service_port,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH, kubeconfig_mount, kubeconfig_volume
from pergola.providers.aws.control_plane.credentials import SECRET_NAME
from pergola.providers.aws.control_plane.render.conventions import (
    CONTROL_PLANE,
    CONTROLLER,
    PRIORITY,
    READ_ONLY,
    RESTARTED,
    TO_SEED,
    TO_SHOOT,
    file_credentials,
    memory_autoscaler,
)
from pergola.providers.aws.control_plane.render.values import Values

NAME: Final = "aws-load-balancer-controller"
WEBHOOK_SERVICE: Final = f"{NAME}-webhook-service"
"""The Service of its webhooks; also the name of the credential that they serve with."""
_LABELS: Final = {"app.kubernetes.io/name": NAME}
_ELB: Final = "elbv2.k8s.aws"
_WEBHOOKS: Final = f"{NAME}-webhook"
_WEBHOOK_PORT: Final = 9443
_METRICS_PORT: Final = 8080
_HEALTH_PORT: Final = 61779
_CERTIFICATES: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - a path in the pod
_FROM_WEBHOOKS: Final = "networking.resources.gardener.cloud/from-all-webhook-targets-allowed-ports"
_INGRESS_CLASS: Final = "alb"
_LEADER: Final = f"{NAME}-leader"
_READ: Final = ("get", "list", "watch")
_KEEP: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_LEADER_RULES: Final = (
    rule("", ["configmaps"], ["create"]),
    rule("", ["configmaps"], ["get", "patch", "update"], names=[_LEADER]),
    rule("coordination.k8s.io", ["leases"], ["create"]),
    rule("coordination.k8s.io", ["leases"], ["get", "update", "patch"], names=[_LEADER]),
)


def seed_objects(values: Values) -> list[JsonObject]:
    """Return the objects on the seed."""
    return [
        _deployment(values),
        service(
            NAME, values.name, _LABELS, service_port("metrics", _METRICS_PORT), clusterIP="None"
        ),
        service(
            WEBHOOK_SERVICE,
            values.name,
            _LABELS,
            service_port("webhook-server", 443, _WEBHOOK_PORT),
            annotations={_FROM_WEBHOOKS: f'[{{"protocol":"TCP","port":{_WEBHOOK_PORT}}}]'},
        ),
        memory_autoscaler(NAME, NAME, NAME),
    ]


def shoot_objects(values: Values, bundle: str) -> list[JsonObject]:
    """Return its permissions and webhooks in the Shoot, if it is enabled.

    Args:
        bundle: the certificates that the Shoot's API server must trust, base64.
    """
    if not values.config.has_load_balancer_controller:
        return []
    subject = account(NAME, KUBE_SYSTEM)
    return [
        service_account(NAME, KUBE_SYSTEM, _LABELS),
        *cluster_role(
            f"{NAME}-role", _rules(), subject, labels=_LABELS, binding=f"{NAME}-rolebinding"
        ),
        *role(
            f"{NAME}-leader-election-role",
            KUBE_SYSTEM,
            _LEADER_RULES,
            subject,
            labels=_LABELS,
            binding=f"{NAME}-leader-election-rolebinding",
        ),
        *_webhooks(values, bundle),
    ]


def _deployment(values: Values) -> JsonObject:
    credentials = file_credentials(SECRET_NAME, workload_identity=values.workload_identity)
    enabled = values.config.has_load_balancer_controller
    container: JsonObject = {
        "name": NAME,
        "image": values.images(NAME),
        "command": ["/controller"],
        "args": _arguments(values),
        "env": list(credentials.variables),
        "ports": [port("webhook-server", _WEBHOOK_PORT), port("metrics-server", _METRICS_PORT)],
        "livenessProbe": http_probe(
            "/healthz", _HEALTH_PORT, initialDelaySeconds=30, timeoutSeconds=10, failureThreshold=2
        ),
        "readinessProbe": http_probe(
            "/readyz",
            _HEALTH_PORT,
            initialDelaySeconds=10,
            timeoutSeconds=10,
            successThreshold=1,
            failureThreshold=2,
        ),
        "resources": requests(memory="128Mi"),
        "securityContext": {**READ_ONLY, "runAsNonRoot": True},
        "volumeMounts": [
            mount("cert", _CERTIFICATES, readOnly=True),
            kubeconfig_mount(),
            *credentials.mounts,
        ],
    }
    certificate = {
        "secretName": values.plan.secret_of(WEBHOOK_SERVICE),
        "defaultMode": 0o644,
    }
    pod: JsonObject = {
        "priorityClassName": PRIORITY,
        "securityContext": {"fsGroup": 65534},
        "terminationGracePeriodSeconds": 10,
        "affinity": _apart(),
        "containers": [container],
        "volumes": [
            {"name": "cert", "secret": certificate},
            kubeconfig_volume(values.plan.kubeconfig, NAME),
            *credentials.volumes,
        ],
    }
    labels = {**_LABELS, **CONTROL_PLANE, **RESTARTED, **TO_SHOOT, **TO_SEED}
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=values.name,
        labels={**_LABELS, **CONTROL_PLANE, **CONTROLLER},
        spec={
            "replicas": values.plan.replicas() if enabled else 0,
            "selector": selector(_LABELS),
            "template": {
                "metadata": {"labels": labels, "annotations": values.secret_checksum},
                "spec": pod,
            },
        },
    )


def _arguments(values: Values) -> list[str]:
    chosen = values.config.load_balancer_controller
    ingress_class = (chosen and chosen.ingress_class_name) or _INGRESS_CLASS
    tags = f"KubernetesCluster={values.name},kubernetes.io/cluster/{values.name}=owned"
    return [
        f"--cluster-name={values.name}",
        f"--ingress-class={ingress_class}",
        f"--aws-region={values.region}",
        f"--aws-vpc-id={values.vpc}",
        "--disable-ingress-class-annotation=true",
        f"--default-tags={tags}",
        "--feature-gates=ALBGatewayAPI=false,NLBGatewayAPI=false",
        f"--kubeconfig={KUBECONFIG_PATH}",
        f"--leader-election-namespace={KUBE_SYSTEM}",
    ]


def _apart() -> JsonObject:
    """Return an affinity that prefers a node for each pod."""
    [(key, value)] = _LABELS.items()
    term = {
        "labelSelector": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _rules() -> list[JsonObject]:
    ingresses = ["", "extensions", "networking.k8s.io"]
    return [
        rule(_ELB, ["targetgroupbindings"], _KEEP),
        rule(_ELB, ["ingressclassparams"], _READ),
        rule("", ["events"], ["create", "patch"]),
        rule("", ["pods"], _READ),
        rule("networking.k8s.io", ["ingressclasses"], _READ),
        {
            "apiGroups": ingresses,
            "resources": ["services", "ingresses"],
            "verbs": ["get", "list", "patch", "update", "watch"],
        },
        rule("", ["nodes", "namespaces", "endpoints"], _READ),
        rule("", ["configmaps"], ["get", "delete", "create", "update"]),
        {
            "apiGroups": [_ELB, *ingresses],
            "resources": [
                "targetgroupbindings/status",
                "pods/status",
                "services/status",
                "ingresses/status",
            ],
            "verbs": ["update", "patch"],
        },
        rule("discovery.k8s.io", ["endpointslices"], _READ),
        rule("gateway.networking.k8s.io", ["referencegrants"], ["get", "list", "patch", "watch"]),
    ]


def _webhooks(values: Values, bundle: str) -> list[JsonObject]:
    """Return its webhooks: without them it would accept what it cannot serve."""
    [(key, value)] = _LABELS.items()
    not_itself = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
    gated: JsonObject = {
        "key": "elbv2.k8s.aws/pod-readiness-gate-inject",
        "operator": "In",
        "values": ["enabled"],
    }
    address = f"https://{WEBHOOK_SERVICE}.{values.name}:443"

    def webhook(name: str, path: str, rules: JsonObject, **more: object) -> JsonObject:
        return {
            "name": f"{name}.{_ELB}",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"{address}/{path}", "caBundle": bundle},
            "rules": [rules],
            **more,
        }

    both = ("CREATE", "UPDATE")
    bindings = _admits(_ELB, "v1beta1", "targetgroupbindings", *both)
    path = "elbv2-k8s-aws-v1beta1"
    mutating = [
        webhook(
            "mpod",
            "mutate-v1-pod",
            _admits("", "v1", "pods", "CREATE"),
            namespaceSelector={"matchExpressions": [gated]},
            objectSelector=not_itself,
        ),
        webhook("mtargetgroupbinding", f"mutate-{path}-targetgroupbinding", bindings),
    ]
    validating = [
        webhook(
            "vingressclassparams",
            f"validate-{path}-ingressclassparams",
            _admits(_ELB, "v1beta1", "ingressclassparams", *both),
            objectSelector=not_itself,
        ),
        webhook("vtargetgroupbinding", f"validate-{path}-targetgroupbinding", bindings),
        webhook(
            "vingress",
            "validate-networking-v1-ingress",
            _admits("networking.k8s.io", "v1", "ingresses", *both),
            matchPolicy="Equivalent",
        ),
    ]
    api = "admissionregistration.k8s.io/v1"
    return [
        manifest(api, f"{kind}WebhookConfiguration", _WEBHOOKS, labels=_LABELS, webhooks=webhooks)
        for kind, webhooks in (("Mutating", mutating), ("Validating", validating))
    ]


def _admits(group: str, version: str, resource: str, *operations: str) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
        "operations": list(operations),
    }
