"""The three programs of the autoscaler: their Deployments and companions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import authorities, monitoring
from pergola.garden.components.conventions import (
    FROM_WORLD,
    GARDEN_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
)
from pergola.garden.components.priority_classes import P200, P300
from pergola.garden.components.vertical_pod_autoscaler.permissions import (
    ADMISSION_CONTROLLER,
    LABELS,
    RECOMMENDER,
    UPDATER,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    disruption_budget,
    env,
    from_pod,
    http_probe,
    manifest,
    mount,
    port,
    projected,
    requests,
    secret_files,
    selector,
    service,
    service_account,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

CERTIFICATE: Final = "vpa-admission-controller-server"
WEBHOOK: Final = "vpa-webhook"
"""The Service of the admission controller."""

_SERVER_PORT: Final = 10250
_TLS_VOLUME: Final = "vpa-tls-certs"
_TLS_PATH: Final = "/etc/tls-certs"
_COMMON: Final = ("--stderrthreshold=info", "--kube-api-qps=200", "--kube-api-burst=250")
_ELECTED: Final = ("--leader-elect=true", f"--leader-elect-resource-namespace={NAMESPACE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One of the three programs.

    Attributes:
        name: The name of its Deployment and of its image.
        container: The name of its container.
        kind: The value of the high-availability label.
        service: The name of its Service.
        args: Arguments that the programs do not share.
        server: The port `server` of its pods.
        amounts: The resource requests of its container.
        autoscaled: Whether the autoscaler scales it. The recommender does not scale itself: it
            needs its memory when it starts.
        environment: The environment variables of its container.
    """

    name: str
    container: str
    kind: str
    service: str
    priority: str
    args: tuple[str, ...]
    metrics: int
    server: int
    amounts: Mapping[str, str]
    autoscaled: bool = True
    environment: tuple[JsonObject, ...] = field(default=())

    @property
    def app(self) -> dict[str, str]:
        """The label that selects its pods."""
        return {"app": self.name}


_OWN_NAMESPACE: Final = tuple(env(NAMESPACE=from_pod("metadata.namespace")))
PROGRAMS: Final = (
    Program(
        name=ADMISSION_CONTROLLER,
        container="admission-controller",
        kind="server",
        service=WEBHOOK,
        priority=P300,
        args=(
            "--v=2",
            f"--client-ca-file={_TLS_PATH}/bundle.crt",
            f"--tls-cert-file={_TLS_PATH}/tls.crt",
            f"--tls-private-key={_TLS_PATH}/tls.key",
            "--address=:8944",
            f"--port={_SERVER_PORT}",
            "--register-webhook=false",
        ),
        metrics=8944,
        server=_SERVER_PORT,
        amounts={"cpu": "10m", "memory": "30Mi"},
        environment=_OWN_NAMESPACE,
    ),
    Program(
        name=RECOMMENDER,
        container="recommender",
        kind="controller",
        service=RECOMMENDER,
        priority=P200,
        args=(
            "--v=3",
            "--pod-recommendation-min-cpu-millicores=10",
            "--pod-recommendation-min-memory-mb=10",
            "--recommendation-margin-fraction=0.05",
            "--recommender-interval=1m",
            "--memory-saver=true",
            "--target-cpu-percentile=0.9",
            "--recommendation-lower-bound-cpu-percentile=0.5",
            "--recommendation-upper-bound-cpu-percentile=0.95",
            "--cpu-histogram-decay-half-life=24h",
            "--target-memory-percentile=0.9",
            "--recommendation-lower-bound-memory-percentile=0.5",
            "--recommendation-upper-bound-memory-percentile=0.95",
            "--memory-histogram-decay-half-life=24h",
            "--memory-aggregation-interval=24h",
            "--memory-aggregation-interval-count=8",
            "--update-worker-count=10",
            *_ELECTED,
            f"--leader-elect-resource-name={RECOMMENDER}",
        ),
        metrics=8942,
        server=8080,
        amounts={"cpu": "200m", "memory": "800M"},
        autoscaled=False,
    ),
    Program(
        name=UPDATER,
        container="updater",
        kind="controller",
        service=UPDATER,
        priority=P200,
        args=(
            "--v=2",
            "--min-replicas=1",
            "--eviction-tolerance=1.0",
            "--eviction-rate-burst=1",
            "--eviction-rate-limit=-1",
            "--updater-interval=1m",
            "--evict-after-oom-threshold=48h",
            *_ELECTED,
        ),
        metrics=8943,
        server=8080,
        amounts={"cpu": "10m", "memory": "15Mi"},
        environment=_OWN_NAMESPACE,
    ),
)


def objects(program: Program, landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the objects of a program."""
    name = program.name
    yield service_account(name, NAMESPACE, LABELS)
    yield _deployment(program, landscape)
    yield _service(program)
    yield disruption_budget(name, NAMESPACE, program.app, LABELS)
    yield monitoring.service_monitor(
        monitoring.GARDEN, name, _service_labels(program), _endpoint(program)
    )
    if program.autoscaled:
        target = target_reference("Deployment", name)
        yield vertical_pod_autoscaler(name, NAMESPACE, target, program.container)


def settings(program: Program, landscape: Landscape) -> Iterator[str]:
    """Yield the arguments of a program."""
    yield from (*program.args, *_COMMON)
    chosen = landscape.runtime.settings.vertical_pod_autoscaler
    if gates := chosen.feature_gates:
        values = (f"{gate}={str(gates[gate]).lower()}" for gate in sorted(gates))
        yield f"--feature-gates={','.join(values)}"
    if program.name == RECOMMENDER:
        for resource in sorted(chosen.max_allowed):
            amount = chosen.max_allowed[resource]
            yield f"--container-recommendation-max-allowed-{resource}={amount}"


def _deployment(program: Program, landscape: Landscape) -> JsonObject:
    labels = {**program.app, **LABELS}
    return manifest(
        "apps/v1",
        "Deployment",
        program.name,
        namespace=NAMESPACE,
        labels={**labels, HIGH_AVAILABILITY: program.kind},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(program.app),
            "template": {
                "metadata": {"labels": {**labels, **TO_DNS, **TO_RUNTIME_API_SERVER}},
                "spec": _pod(program, landscape),
            },
        },
    )


def _pod(program: Program, landscape: Landscape) -> JsonObject:
    container = _container(program, landscape)
    pod: JsonObject = {
        "priorityClassName": program.priority,
        "serviceAccountName": program.name,
        "containers": [container],
    }
    if program.environment:
        container["env"] = list(program.environment)
    if program.name == ADMISSION_CONTROLLER:
        container["volumeMounts"] = [mount(_TLS_VOLUME, _TLS_PATH, readOnly=True)]
        container["readinessProbe"] = http_probe(
            "/health-check", "metrics", failureThreshold=3, periodSeconds=10, successThreshold=1
        )
        pod["volumes"] = [_certificates(landscape)]
    return pod


def _container(program: Program, landscape: Landscape) -> JsonObject:
    return {
        "name": program.container,
        "image": landscape.image(program.name),
        "imagePullPolicy": "IfNotPresent",
        "args": list(settings(program, landscape)),
        "livenessProbe": http_probe(
            "/health-check",
            "metrics",
            failureThreshold=3,
            initialDelaySeconds=120,
            periodSeconds=60,
            successThreshold=1,
            timeoutSeconds=30,
        ),
        "ports": [port("server", program.server), port("metrics", program.metrics)],
        "resources": requests(**program.amounts),
        "securityContext": {"allowPrivilegeEscalation": False},
    }


def _certificates(landscape: Landscape) -> JsonObject:
    bundle = landscape.credentials.bundle_name(authorities.RUNTIME)
    own = landscape.credentials.name(CERTIFICATE)
    return projected(
        _TLS_VOLUME,
        secret_files(bundle, {"bundle.crt": "bundle.crt"}),
        secret_files(own, {"tls.crt": "tls.crt", "tls.key": "tls.key"}),
        mode=0o644,
    )


def _service_labels(program: Program) -> dict[str, str]:
    return {**program.app, **LABELS} if program.service == WEBHOOK else program.app


def _service(program: Program) -> JsonObject:
    ports = [service_port("metrics", program.metrics)]
    opened = open_ports(GARDEN_SCRAPES, program.metrics)
    if program.service == WEBHOOK:
        ports.append(service_port("server", 443, program.server))
        opened |= open_ports(FROM_WORLD, program.server)
    return service(
        program.service,
        NAMESPACE,
        program.app,
        *ports,
        labels=_service_labels(program),
        annotations=opened,
    )


def _endpoint(program: Program) -> JsonObject:
    container_port = "__meta_kubernetes_pod_container_port_name"
    targets = [
        monitoring.job(program.name),
        monitoring.keep("metrics", container_port),
        monitoring.POD_LABELS,
    ]
    return monitoring.endpoint("metrics", targets=targets)
