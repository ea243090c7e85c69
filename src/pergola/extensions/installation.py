"""The objects of an extension on a seed: its identity, its permissions and its Deployment."""

import gzip
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import ExtensionError
from pergola.extension_api.kinds import GROUP
from pergola.extensions.actuator import Actuator
from pergola.extensions.webhooks.declare import configuration_name
from pergola.extensions.webhooks.permissions import cluster_rules, namespace_rules
from pergola.extensions.webhooks.settings import PORT, SERVICE_PORT
from pergola.kube.yaml import dump

RELEASE_NAMESPACE: Final = "{{ .Release.Namespace }}"
"""The namespace of an extension that is installed by a chart."""
_READ: Final = ["get", "list", "watch"]
# Without list and watch: objects of other namespaces are read one by one.
_OWN: Final = ["get", "create", "patch", "update", "delete"]
_PORTS: Final = {"metrics": 8080, "health": 8081}
_USER: Final = 65532
_LONGEST_NAME: Final = 63 - len(configuration_name(""))
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_TLS: Final = "tls"
# In memory: the root file system is read-only, and keys do not belong on a disk.
_TLS_VOLUME: Final = {"name": _TLS, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
_TLS_FOLDER: Final = "/var/run/pergola/tls"
_HIGHLY_AVAILABLE: Final = "high-availability-config.resources.gardener.cloud/type"
_TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How an extension runs.

    Attributes:
        name: of the extension and of all its objects.
        image: has Pergola and the modules of the actuators in it.
        plurals: of the kinds that it serves, such as `networks`.
        references: of the actuators, as `pergola extension run` takes them.
        rules: permissions of its actuators beyond those of every extension.
        has_webhooks: whether it serves webhooks, and registers them.
    """

    name: str
    image: str
    plurals: Sequence[str]
    references: Sequence[str]
    namespace: str = RELEASE_NAMESPACE
    rules: Sequence[JsonObject] = field(default=())
    has_webhooks: bool = False


def installation_of(
    actuators: Sequence[Actuator | type[Actuator]], references: Sequence[str], image: str
) -> Installation:
    """Return how the extension of some actuators runs.

    Args:
        actuators: classes are made without arguments.

    Raises:
        ExtensionError: they are of several extensions, or there is none.
    """
    made = [actuator() if isinstance(actuator, type) else actuator for actuator in actuators]
    return Installation(
        name=name_of_extension(made),
        image=image,
        plurals=sorted({_plural(actuator.kind) for actuator in made}),
        references=references,
        rules=[rule for actuator in made for rule in actuator.rules],
        has_webhooks=any(actuator.webhooks() for actuator in made),
    )


def name_of_extension(actuators: Sequence[Actuator | type[Actuator]]) -> str:
    """Return the name of the extension of all actuators.

    Raises:
        ExtensionError: they are of several extensions, or there is none, or the name is too long.
    """
    names = sorted({actuator.name for actuator in actuators})
    if len(names) != 1:
        raise ExtensionError(
            f"one extension is registered at a time, not {', '.join(names) or 'none'}: "
            "name the actuators of one extension"
        )
    if len(names[0]) > _LONGEST_NAME:
        raise ExtensionError(
            f"{names[0]} is too long a name for an extension: the names of its Service and of its "
            f"Leases are longer still, so that {_LONGEST_NAME} characters are the limit"
        )
    return names[0]


def installation_documents(installation: Installation) -> list[JsonObject]:
    """Return all objects of an extension on a seed, except its namespace."""
    return [
        _service_account(installation),
        *_cluster_permissions(installation),
        *_own_permissions(installation),
        *([_service(installation)] if installation.has_webhooks else []),
        _deployment(installation),
        _disruption_budget(installation),
    ]


def permissions(installation: Installation) -> list[JsonObject]:
    """Return the rules of the ClusterRole of an extension."""
    plurals = list(installation.plurals)
    return [
        _rule(GROUP, plurals, [*_READ, "patch", "update"]),
        _rule(GROUP, [f"{plural}/status" for plural in plurals], ["get", "patch", "update"]),
        _rule(GROUP, ["clusters"], _READ),
        _rule(
            "resources.gardener.cloud",
            ["managedresources"],
            [*_READ, "create", "patch", "update", "delete"],
        ),
        _rule("", ["secrets", "configmaps"], _OWN),
        _rule("", ["namespaces"], ["get"]),
        _rule("monitoring.coreos.com", ["scrapeconfigs", "prometheusrules"], _OWN),
        _rule("events.k8s.io", ["events"], ["create", "patch"]),
        *(cluster_rules(installation.name) if installation.has_webhooks else []),
        *installation.rules,
    ]


def raw_chart(installation: Installation) -> bytes:
    """Return the objects as a packed Helm chart; equal installations give equal bytes."""
    chart: JsonObject = {"apiVersion": "v2", "name": installation.name, "version": "0.1.0"}
    templates = "".join(f"---\n{dump(obj)}" for obj in installation_documents(installation))
    files = {
        "Chart.yaml": dump(chart),
        "values.yaml": "{}\n",
        "templates/extension.yaml": templates,
    }
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, text in files.items():
            member = tarfile.TarInfo(f"{installation.name}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def _plural(kind: str) -> str:
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _service_account(on: Installation) -> JsonObject:
    return _object("v1", "ServiceAccount", on, automountServiceAccountToken=False)


def _cluster_permissions(on: Installation) -> list[JsonObject]:
    name = f"extension-{on.name}"
    role = _object(_RBAC, "ClusterRole", on, name=name, rules=permissions(on))
    binding = _binding(on, "ClusterRoleBinding", "ClusterRole", name)
    for obj in (role, binding):
        del obj["metadata"]["namespace"]
    return [role, binding]


def _own_permissions(on: Installation) -> list[JsonObject]:
    """Leader election, heartbeat and certificates in the namespace of the extension."""
    leases = _rule("coordination.k8s.io", ["leases"], ["get", "create", "patch", "update"])
    rules = [leases, *(namespace_rules(on.name) if on.has_webhooks else [])]
    role = _object(_RBAC, "Role", on, rules=rules)
    return [role, _binding(on, "RoleBinding", "Role", on.name)]


def _binding(on: Installation, kind: str, role: str, name: str) -> JsonObject:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name}
    subject = {"kind": "ServiceAccount", "name": on.name, "namespace": on.namespace}
    return _object(_RBAC, kind, on, name=name, roleRef=reference, subjects=[subject])


def _deployment(on: Installation) -> JsonObject:
    template = {"metadata": {"labels": _labels(on)}, "spec": _pod(on)}
    spec = {
        "replicas": 2,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": _labels(on)},
        "template": template,
    }
    deployment = _object("apps/v1", "Deployment", on, spec=spec)
    deployment["metadata"]["labels"][_HIGHLY_AVAILABLE] = "controller"
    return deployment


def _pod(on: Installation) -> JsonObject:
    return {
        "serviceAccountName": on.name,
        "automountServiceAccountToken": False,
        "priorityClassName": "gardener-system-900",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(on)],
        "volumes": [
            {"name": "api-access", "projected": {"sources": _api_access()}},
            *([_TLS_VOLUME] if on.has_webhooks else []),
        ],
    }


def _container(on: Installation) -> JsonObject:
    own_namespace = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    ports = _PORTS | ({"webhooks": PORT} if on.has_webhooks else {})
    return {
        "name": on.name,
        "image": on.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["pergola", "extension", "run", *on.references],
        "args": [
            f"--metrics-bind-address=:{_PORTS['metrics']}",
            f"--health-bind-address=:{_PORTS['health']}",
            *(_webhook_arguments(on) if on.has_webhooks else []),
        ],
        "env": [{"name": "LEADER_ELECTION_NAMESPACE", "valueFrom": own_namespace}],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()
        ],
        "livenessProbe": _probe("/healthz", initialDelaySeconds=30, failureThreshold=5),
        "readinessProbe": _probe("/readyz", initialDelaySeconds=5, failureThreshold=3),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "api-access", "mountPath": _TOKEN_FOLDER, "readOnly": True},
            *([{"name": _TLS, "mountPath": _TLS_FOLDER}] if on.has_webhooks else []),
        ],
    }


def _webhook_arguments(on: Installation) -> list[str]:
    """The configurations are deleted with the namespace, so that they never outlive it."""
    return [
        f"--webhook-config-server-port={PORT}",
        f"--webhook-config-cert-dir={_TLS_FOLDER}",
        f"--webhook-config-owner-namespace={on.namespace}",
    ]


def _service(on: Installation) -> JsonObject:
    """The Service by which API servers reach the webhooks."""
    port = {"name": "webhooks", "port": SERVICE_PORT, "targetPort": "webhooks", "protocol": "TCP"}
    spec = {"selector": _labels(on), "ports": [port]}
    return _object("v1", "Service", on, name=configuration_name(on.name), spec=spec)


def _probe(path: str, **more: int) -> JsonObject:
    get = {"path": path, "port": "health", "scheme": "HTTP"}
    return {"httpGet": get, "periodSeconds": 10, "timeoutSeconds": 5, **more}


def _api_access() -> list[JsonObject]:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    ca = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 43200}},
        {"configMap": ca},
        {"downwardAPI": {"items": [namespace]}},
    ]


def _disruption_budget(on: Installation) -> JsonObject:
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": _labels(on)},
    }
    return _object("policy/v1", "PodDisruptionBudget", on, spec=spec)


def _object(
    api_version: str, kind: str, on: Installation, *, name: str = "", **more: object
) -> JsonObject:
    metadata = {"name": name or on.name, "namespace": on.namespace, "labels": _labels(on)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def _labels(on: Installation) -> dict[str, str]:
    return {"app.kubernetes.io/name": on.name}


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
