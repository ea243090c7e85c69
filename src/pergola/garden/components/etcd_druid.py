"""etcd-druid: runs the etcds that `Etcd` objects describe (spec 20 §13)."""

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject, map_at, name_of, without_nulls
from pergola.bundle import make_unique
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.conventions import (
    FROM_WORLD,
    SEED_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
    to_service,
)
from pergola.garden.components.monitoring import (
    CACHE,
    endpoint,
    kept_metrics,
    service_monitor,
)
from pergola.garden.components.priority_classes import P300
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.yaml import dump
from pergola.manifests import (
    READ,
    account,
    cluster_role,
    config_map_volume,
    disruption_budget,
    manifest,
    mount,
    requests,
    rule,
    selector,
    service,
    service_account,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

NAME: Final = "etcd-druid"
METRICS_PORT: Final = 8080

_LABELS: Final = {"gardener.cloud/role": NAME}
_ROLE: Final = "gardener.cloud:system:etcd-druid"
_CERTIFICATE: Final = "etcd-druid-webhook"
_WEBHOOK_PORT: Final = 10250
_TLS_VOLUME: Final = "webhook-server-tls-cert"
_TLS_PATH: Final = "/etc/webhook-server-tls"
_CONFIG_VOLUME: Final = "operator-config"
_CONFIG_PATH: Final = "/operator_config"
_CONFIG_FILE: Final = "config.yaml"
_GARBAGE_COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
_ALL: Final = (*READ, "create", "update", "patch", "delete")
_OWN_KINDS: Final = ("etcds", "etcdcopybackupstasks", "etcdopstasks")
_METRICS: Final = (
    "etcddruid_compaction_jobs_total",
    "etcddruid_compaction_full_snapshot_triggered_total",
    "etcddruid_compaction_jobs_current",
    "etcddruid_compaction_job_duration_seconds_bucket",
    "etcddruid_compaction_job_duration_seconds_sum",
    "etcddruid_compaction_job_duration_seconds_count",
    "etcddruid_compaction_num_delta_events",
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the webhook."""
    del landscape
    yield authorities.runtime_server(_CERTIFICATE, *authorities.service_hosts(NAME, NAMESPACE))


def render(landscape: Landscape) -> Rendered:
    """Return druid's Deployment, its permissions and its webhook."""
    config = make_unique(_config_map(landscape.etcd_config))
    objects = (
        service_account(NAME, NAMESPACE, _LABELS),
        *cluster_role(_ROLE, _rules(), account(NAME, NAMESPACE), labels=_LABELS),
        config,
        _deployment(landscape, name_of(config)),
        disruption_budget(NAME, NAMESPACE, _LABELS),
        _service(),
        service_monitor(CACHE, NAME, _LABELS, endpoint("metrics", metrics=kept_metrics(*_METRICS))),
        _webhook(landscape),
        vertical_pod_autoscaler(
            f"{NAME}-vpa",
            NAMESPACE,
            target_reference("Deployment", NAME),
            NAME,
            {"memory": "100M"},
            labels=_LABELS,
        ),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _config_map(etcd_config: JsonObject) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        f"{NAME}-operator-config",
        namespace=NAMESPACE,
        labels=_LABELS,
        data={_CONFIG_FILE: dump(configuration(etcd_config))},
    )


def configuration(etcd_config: JsonObject) -> JsonObject:
    """Return druid's configuration file.

    Args:
        etcd_config: `controllers.garden.etcdConfig` of the operator's configuration (spec 20 §3).
    """
    compaction = map_at(etcd_config, "backupCompactionController")
    settings: JsonObject = {
        "apiVersion": "config.druid.gardener.cloud/v1alpha1",
        "kind": "OperatorConfiguration",
        "leaderElection": {"enabled": True},
        "server": {"webhooks": {"port": _WEBHOOK_PORT, "serverCertDir": _TLS_PATH}},
        "controllers": {
            "etcd": {
                "concurrentSyncs": map_at(etcd_config, "etcdController").get("workers"),
                "enableEtcdSpecAutoReconcile": False,
                "disableEtcdServiceAccountAutomount": True,
            },
            # druid always registers this controller, and has no defaults for a disabled one.
            "etcdCopyBackupsTask": {"enabled": True},
            "compaction": {
                "enabled": compaction.get("enableBackupCompaction"),
                "concurrentSyncs": compaction.get("workers"),
                "eventsThreshold": compaction.get("eventsThreshold"),
                "activeDeadlineDuration": compaction.get("activeDeadlineDuration"),
                "metricsScrapeWaitDuration": compaction.get("metricsScrapeWaitDuration"),
            },
        },
        "webhooks": {
            "etcdComponentProtection": {
                "enabled": True,
                "serviceAccountInfo": {"name": NAME, "namespace": NAMESPACE},
                "exemptServiceAccounts": [_GARBAGE_COLLECTOR],
            }
        },
        "featureGates": etcd_config.get("featureGates"),
    }
    # Settings that the operator's configuration omits keep druid's defaults.
    return without_nulls(settings)


def _rules() -> list[JsonObject]:
    status = [f"{kind}/{part}" for kind in _OWN_KINDS for part in ("status", "finalizers")]
    return [
        rule("", ["pods"], [*READ, "delete", "deletecollection"]),
        rule("", ["secrets", "endpoints"], ["get", "list", "patch", "update", "watch"]),
        rule("", ["events"], ["create", *READ, "patch", "update"]),
        rule("", ["serviceaccounts", "services", "configmaps"], _ALL),
        rule("", ["persistentvolumeclaims"], READ),
        rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], _ALL),
        rule("apps", ["statefulsets"], _ALL),
        rule("batch", ["jobs"], _ALL),
        rule("policy", ["poddisruptionbudgets"], _ALL),
        rule("coordination.k8s.io", ["leases"], [*_ALL, "deletecollection"]),
        rule("druid.gardener.cloud", _OWN_KINDS, _ALL),
        rule("druid.gardener.cloud", status, ["get", "update", "patch", "create"]),
    ]


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels={HIGH_AVAILABILITY: "controller", **_LABELS},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "template": {"metadata": {"labels": _pod_labels()}, "spec": _pod(landscape, config)},
        },
    )


def _pod_labels() -> Mapping[str, str]:
    return {
        **_LABELS,
        **TO_DNS,
        **TO_RUNTIME_API_SERVER,
        **to_service("all-shoots-etcd-main-client", 8080),
        **to_service("virtual-garden-etcd-main-client", 8080),
    }


def _pod(landscape: Landscape, config: str) -> JsonObject:
    certificate = landscape.credentials.name(_CERTIFICATE)
    return {
        "priorityClassName": P300,
        "serviceAccountName": NAME,
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "containers": [
            {
                "name": NAME,
                "image": landscape.image(NAME),
                "imagePullPolicy": "IfNotPresent",
                "args": [f"--config={_CONFIG_PATH}/{_CONFIG_FILE}"],
                "ports": [{"containerPort": METRICS_PORT}],
                "resources": requests(cpu="50m", memory="128Mi"),
                "securityContext": {"allowPrivilegeEscalation": False},
                "volumeMounts": [
                    mount(_TLS_VOLUME, _TLS_PATH, readOnly=True),
                    mount(_CONFIG_VOLUME, _CONFIG_PATH, readOnly=True),
                ],
            }
        ],
        "volumes": [
            {"name": _TLS_VOLUME, "secret": {"secretName": certificate, "defaultMode": 0o644}},
            config_map_volume(_CONFIG_VOLUME, config),
        ],
    }


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _LABELS,
        service_port("metrics", METRICS_PORT),
        service_port("webhooks", 443, _WEBHOOK_PORT),
        labels={HIGH_AVAILABILITY: "controller", **_LABELS},
        annotations={
            **open_ports(FROM_WORLD, _WEBHOOK_PORT),
            **open_ports(SEED_SCRAPES, METRICS_PORT),
        },
    )


def _webhook(landscape: Landscape) -> JsonObject:
    """Return the registration that lets only druid change the objects that it manages."""
    bundle = landscape.credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    common: JsonObject = {
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {
            "caBundle": base64.b64encode(bundle).decode(),
            "service": {
                "name": NAME,
                "namespace": NAMESPACE,
                "path": "/webhooks/etcdcomponents",
                "port": 443,
            },
        },
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    name = "etcdcomponents.webhooks.druid.gardener.cloud"
    protected = selector({"app.kubernetes.io/managed-by": NAME})
    scale = _protected("apps", ["statefulsets/scale"])
    webhooks = [
        {"name": name, "objectSelector": protected, "rules": _protected_kinds(), **common},
        {"name": f"stsscale.{name}", "rules": [scale], **common},
    ]
    return manifest(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        NAME,
        labels=_LABELS,
        webhooks=webhooks,
    )


def _protected_kinds() -> list[JsonObject]:
    return [
        _protected("", ["serviceaccounts", "services", "configmaps"]),
        _protected("", ["persistentvolumeclaims"], "DELETE"),
        _protected("rbac.authorization.k8s.io", ["roles", "rolebindings"]),
        _protected("apps", ["statefulsets"]),
        _protected("policy", ["poddisruptionbudgets"]),
        _protected("batch", ["jobs"]),
        _protected("coordination.k8s.io", ["leases"], "DELETE"),
    ]


def _protected(group: str, resources: list[str], *operations: str) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations or ("UPDATE", "DELETE")),
        "resources": resources,
        "scope": "*",
    }


ETCD_DRUID: Final = Component(
    name=NAME,
    deploy=task_names.ETCD_DRUID,
    wait="Waiting for ETCD Druid to be ready",
    credentials=credentials,
    render=render,
    limit=120.0,
)
