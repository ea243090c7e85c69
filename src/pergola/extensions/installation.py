"""The objects of an extension on a seed: its identity, its permissions and its Deployment."""

import gzip
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import ExtensionError
from pergola.extension_api.kinds import GROUP
from pergola.extensions.actuator import Actuator
from pergola.extensions.webhooks.declare import configuration_name
from pergola.extensions.webhooks.permissions import cluster_rules, namespace_rules
from pergola.extensions.webhooks.settings import PORT, SERVICE_PORT
from pergola.kube.yaml import dump
from pergola.manifests import (
    READ,
    account,
    cluster_role,
    disruption_budget,
    empty_dir,
    env,
    from_pod,
    http_probe,
    manifest,
    mount,
    non_root,
    port,
    requests,
    restricted,
    role,
    rule,
    selector,
    service,
    service_account,
    service_port,
    token_mount,
    token_volume,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

RELEASE_NAMESPACE: Final = "{{ .Release.Namespace }}"
"""The namespace of an extension that is installed by a chart."""
# Without list and watch: objects of other namespaces are read individually.
_OWN: Final = ["get", "create", "patch", "update", "delete"]
_PORTS: Final = {"metrics": 8080, "health": 8081}
_USER: Final = 65532
_LONGEST_NAME: Final = 63 - len(configuration_name(""))
_TLS: Final = "tls"
_TLS_FOLDER: Final = "/var/run/pergola/tls"
_POLICIES: Final = "networking.resources.gardener.cloud"
_CONNECTIONS: Final = dict.fromkeys(
    (
        "networking.gardener.cloud/to-dns",
        "networking.gardener.cloud/to-private-networks",
        "networking.gardener.cloud/to-public-networks",
        "networking.gardener.cloud/to-runtime-apiserver",
        f"{_POLICIES}/to-all-shoots-kube-apiserver-tcp-443",
    ),
    "allowed",
)
"""Labels by which Gardener's policies let the pods of an extension connect to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The installation of an extension.

    Attributes:
        name: the name of the extension and of all its objects.
        image: contains Pergola and the modules of the actuators.
        plurals: the plurals of the kinds that it serves, such as `networks`.
        references: the references of the actuators, in the form that `pergola extension run`
            accepts.
        rules: permissions of its actuators in addition to those of every extension.
        has_webhooks: whether it serves and registers webhooks.
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
    """Return the installation for the extension of some actuators.

    Args:
        actuators: classes are instantiated without arguments.

    Raises:
        ExtensionError: they belong to several extensions, or there is none.
    """
    made = [actuator() if isinstance(actuator, type) else actuator for actuator in actuators]
    return Installation(
        name=name_of_extension(made),
        image=image,
        plurals=sorted({_plural(actuator.kind) for actuator in made}),
        references=references,
        rules=[rule for actuator in made for rule in actuator.rules],
        has_webhooks=any(actuator.has_webhooks() for actuator in made),
    )


def name_of_extension(actuators: Sequence[Actuator | type[Actuator]]) -> str:
    """Return the name of the extension of all actuators.

    Raises:
        ExtensionError: they belong to several extensions, there is none, or the name is too long.
    """
    names = sorted({actuator.name for actuator in actuators})
    if len(names) != 1:
        raise ExtensionError(
            f"one extension is registered at a time, not {', '.join(names) or 'none'}: name the "
            "actuators of one extension"
        )
    if len(names[0]) > _LONGEST_NAME:
        raise ExtensionError(
            f"{names[0]} is too long as the name of an extension: the names of its Service and "
            f"Leases are longer, so the limit is {_LONGEST_NAME} characters"
        )
    return names[0]


def installation_documents(installation: Installation) -> list[JsonObject]:
    """Return all objects of an extension on a seed, except its namespace."""
    return [
        service_account(installation.name, installation.namespace, _labels(installation)),
        *_cluster_permissions(installation),
        *_own_permissions(installation),
        _service(installation),
        _deployment(installation),
        disruption_budget(installation.name, installation.namespace, _labels(installation)),
    ]


def permissions(installation: Installation) -> list[JsonObject]:
    """Return the rules of the ClusterRole of an extension."""
    plurals = list(installation.plurals)
    return [
        rule(GROUP, plurals, [*READ, "patch", "update"]),
        rule(GROUP, [f"{plural}/status" for plural in plurals], ["get", "patch", "update"]),
        rule(GROUP, ["clusters"], READ),
        rule(
            "resources.gardener.cloud",
            ["managedresources"],
            [*READ, "create", "patch", "update", "delete"],
        ),
        rule("", ["secrets", "configmaps"], _OWN),
        rule("", ["namespaces"], ["get"]),
        rule("monitoring.coreos.com", ["scrapeconfigs", "prometheusrules"], _OWN),
        rule("events.k8s.io", ["events"], ["create", "patch"]),
        *(cluster_rules(installation.name) if installation.has_webhooks else []),
        *installation.rules,
    ]


def raw_chart(installation: Installation) -> bytes:
    """Return the objects as a packed Helm chart; equal installations yield equal bytes."""
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


def _cluster_permissions(on: Installation) -> list[JsonObject]:
    subject = account(on.name, on.namespace)
    return cluster_role(f"extension-{on.name}", permissions(on), subject, labels=_labels(on))


def _own_permissions(on: Installation) -> list[JsonObject]:
    """Return rules for leader election, heartbeat and certificates in the extension's namespace."""
    leases = rule("coordination.k8s.io", ["leases"], ["get", "watch", "create", "patch", "update"])
    rules = [leases, *(namespace_rules(on.name) if on.has_webhooks else [])]
    return role(on.name, on.namespace, rules, account(on.name, on.namespace), labels=_labels(on))


def _deployment(on: Installation) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        on.name,
        namespace=on.namespace,
        labels={**_labels(on), HIGH_AVAILABILITY: "controller"},
        spec={
            "replicas": 2,
            "revisionHistoryLimit": 2,
            "selector": selector(_labels(on)),
            "template": {
                "metadata": {
                    "labels": {**_labels(on), **_CONNECTIONS},
                    "annotations": {
                        "prometheus.io/name": on.name,
                        "prometheus.io/port": str(_PORTS["metrics"]),
                        "prometheus.io/scrape": "true",
                    },
                },
                "spec": _pod(on),
            },
        },
    )


def _pod(on: Installation) -> JsonObject:
    # In memory: the root file system is read-only, and keys should not be written to disk.
    keys = empty_dir(_TLS, medium="Memory", sizeLimit="1Mi")
    return {
        "serviceAccountName": on.name,
        "automountServiceAccountToken": False,
        "priorityClassName": "gardener-system-900",
        "securityContext": non_root(_USER, fs_group=True),
        "containers": [_container(on)],
        "volumes": [token_volume(), *([keys] if on.has_webhooks else [])],
    }


def _container(on: Installation) -> JsonObject:
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
        "env": env(LEADER_ELECTION_NAMESPACE=from_pod("metadata.namespace")),
        "ports": [port(name, number) for name, number in ports.items()],
        # It starts in one to two seconds; the other probes begin when this one succeeds.
        "startupProbe": http_probe("/healthz", "health", periodSeconds=1, failureThreshold=60),
        "livenessProbe": _probe("/healthz", failureThreshold=5),
        "readinessProbe": _probe("/readyz"),
        "resources": requests(cpu="20m", memory="128Mi"),
        "securityContext": restricted(),
        "volumeMounts": [
            token_mount(),
            *([mount(_TLS, _TLS_FOLDER)] if on.has_webhooks else []),
        ],
    }


def _webhook_arguments(on: Installation) -> list[str]:
    """Return arguments that make the configurations disappear together with the namespace."""
    return [
        f"--webhook-config-server-port={PORT}",
        f"--webhook-config-cert-dir={_TLS_FOLDER}",
        f"--webhook-config-owner-namespace={on.namespace}",
    ]


def _service(on: Installation) -> JsonObject:
    """Return the Service through which API servers call the webhooks.

    Gardener denies all connections in the namespace of an extension but those that the annotations
    permit. The API server of the seed may be outside of it.
    """
    callers = [_namespace("kubernetes.io/metadata.name", "garden")]
    opened = {"from-all-seed-scrape-targets-allowed-ports": _opened(_PORTS["metrics"])}
    ports = [service_port("metrics", _PORTS["metrics"], "metrics")]
    if on.has_webhooks:
        callers.append(_namespace("gardener.cloud/role", "shoot"))
        opened["from-all-webhook-targets-allowed-ports"] = _opened(PORT)
        opened["from-world-to-ports"] = _opened(PORT)
        ports.insert(0, service_port("webhooks", SERVICE_PORT, "webhooks"))
    annotations = {
        **opened,
        "namespace-selectors": orjson.dumps(callers).decode(),
        "pod-label-selector-namespace-alias": "extensions",
    }
    return service(
        configuration_name(on.name),
        on.namespace,
        _labels(on),
        *ports,
        labels=_labels(on),
        annotations={f"{_POLICIES}/{name}": text for name, text in annotations.items()},
    )


def _namespace(label: str, value: str) -> JsonObject:
    return {"matchLabels": {label: value}}


def _opened(number: int) -> str:
    return orjson.dumps([{"port": number, "protocol": "TCP"}]).decode()


def _probe(path: str, **timing: int) -> JsonObject:
    return http_probe(path, "health", host=None, periodSeconds=5, timeoutSeconds=5, **timing)


def _labels(on: Installation) -> dict[str, str]:
    return {"app.kubernetes.io/name": on.name}
