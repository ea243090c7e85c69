"""gardener-admission-controller: admission and authorization webhooks (spec 20 §16.3).

The API server runs in the runtime cluster, so it calls the webhooks by URL rather than through a
Service of its own cluster.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, name_of
from pergola.bundle.versions import Version
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.gardener_program import (
    CLIENT_CONNECTION,
    SERVER,
    Program,
    autoscaler,
    budget,
    config_map,
    deployment,
    gardener_labels,
    probes,
    service_monitor,
    webhook_service,
)
from pergola.garden.components.priority_classes import P400
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    READ,
    cluster_role,
    config_map_volume,
    manifest,
    mount,
    requests,
    rule,
    selector,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH
from pergola.secrets_manager import Use

NAME: Final = "gardener-admission-controller"

# Version 1.130 does not know the resource and would reject all requests about it.
_LABELS_INTERNAL_SECRETS_SINCE: Final = Version(1, 150)
_CREATE: Final = ("CREATE",)
_CHANGE: Final = ("CREATE", "UPDATE")
_UPDATE: Final = ("UPDATE",)
_DELETE: Final = ("DELETE",)
_ANY: Final = ("CREATE", "UPDATE", "DELETE")
_PROJECTS: Final = selector({"gardener.cloud/role": "project"})
_USERS_OF_PROJECTS: Final[JsonObject] = {
    "matchExpressions": [
        {"key": "gardener.cloud/role", "operator": "In", "values": ["project"]},
        {"key": "app", "operator": "NotIn", "values": ["gardener"]},
    ]
}
_INTERNAL_DOMAIN: Final = selector({"role": "internal-domain"})
_RESTRICTED: Final = selector({"gardener.cloud/update-restriction": "true"})


def webhooks(landscape: Landscape) -> list[JsonObject]:
    """Return the mutating and the validating webhook configuration."""
    bundle = landscape.credentials.bundle(authorities.GARDENER).data["bundle.crt"]
    authority = base64.b64encode(bundle).decode()
    validating = (*_validating(), *_resource_size(landscape), *_restrictions())
    return [
        _registration("Mutating", authority, *_mutating(landscape)),
        _registration("Validating", authority, *validating),
    ]


def _registration(kind: str, authority: str, *hooks: JsonObject) -> JsonObject:
    return manifest(
        "admissionregistration.k8s.io/v1",
        f"{kind}WebhookConfiguration",
        NAME,
        webhooks=[_with_authority(hook, authority) for hook in hooks],
    )


def _with_authority(hook: JsonObject, authority: str) -> JsonObject:
    client = {"url": f"https://{NAME}.{NAMESPACE}{hook['path']}", "caBundle": authority}
    kept = {key: value for key, value in hook.items() if key != "path"}
    return {**kept, "clientConfig": client}


def _mutating(landscape: Landscape) -> Iterator[JsonObject]:
    rules = [_rule(_CHANGE, "", "secrets")]
    if Version.parse(landscape.gardener_version) >= _LABELS_INTERNAL_SECRETS_SINCE:
        rules.append(_rule(_CHANGE, GARDENER_CORE, "internalsecrets"))
    yield _webhook(
        "sync-provider-secret-labels",
        "/webhooks/sync-provider-secret-labels",
        *rules,
        namespaceSelector=_PROJECTS,
    )


def _validating() -> Iterator[JsonObject]:
    yield _webhook(
        "validate-namespace-deletion",
        "/webhooks/validate-namespace-deletion",
        _rule(_DELETE, "", "namespaces"),
        namespaceSelector=_PROJECTS,
    )
    yield _webhook(
        "validate-kubeconfig-secrets",
        "/webhooks/validate-kubeconfig-secrets",
        _rule(_CHANGE, "", "secrets"),
        namespaceSelector=_USERS_OF_PROJECTS,
    )
    yield _webhook(
        "internal-domain-secret",
        "/webhooks/admission/validate-internal-domain",
        _rule(_ANY, "", "secrets"),
        objectSelector=_INTERNAL_DOMAIN,
    )
    for name in ("audit-policies", "authentication-configuration", "authorization-configuration"):
        yield _webhook(
            name,
            f"/webhooks/{name}",
            _rule(_CHANGE, GARDENER_CORE, "shoots"),
            _rule(_UPDATE, "", "configmaps"),
            namespaceSelector=_PROJECTS,
        )
    yield _webhook(
        "shoot-kubeconfig-secret-ref",
        "/webhooks/validate-shoot-kubeconfig-secret-ref",
        _rule(_UPDATE, "", "secrets"),
        namespaceSelector=_PROJECTS,
    )
    yield _webhook(
        "update-restriction",
        "/webhooks/update-restriction",
        _rule(_ANY, "", "secrets", "configmaps"),
        objectSelector=_RESTRICTED,
    )


def _resource_size(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the webhook that limits the size of objects, if the Garden sets limits."""
    config = landscape.virtual.gardener.admission_controller.resource_admission_configuration
    if config is None or not config.limits:
        return
    rules: list[JsonObject] = [
        {
            "operations": list(_CHANGE),
            "apiGroups": limit.api_groups,
            "apiVersions": limit.api_versions,
            "resources": limit.resources,
        }
        for limit in config.limits
    ]
    yield _webhook(
        "validate-resource-size",
        "/webhooks/validate-resource-size",
        *rules,
        namespaceSelector=_USERS_OF_PROJECTS,
    )


def _restrictions() -> Iterator[JsonObject]:
    """Yield the webhooks that confine gardenlets to their own Seed or Shoot."""
    yield _webhook(
        "seed-restriction",
        "/webhooks/admission/seedrestriction",
        _rule(_CREATE, "", "configmaps", "secrets", "serviceaccounts"),
        _rule(_CREATE, "rbac.authorization.k8s.io", "clusterrolebindings"),
        _rule(_CREATE, "coordination.k8s.io", "leases"),
        _rule(_CREATE, "certificates.k8s.io", "certificatesigningrequests"),
        _rule(_CREATE, GARDENER_CORE, "backupentries", "internalsecrets", "shootstates"),
        _rule(("CREATE", "DELETE"), GARDENER_CORE, "backupbuckets"),
        _rule(_ANY, GARDENER_CORE, "seeds"),
        _rule(_CREATE, "operations.gardener.cloud", "bastions", version="v1alpha1"),
        matchPolicy="Equivalent",
    )
    yield _webhook(
        "shoot-restriction",
        "/webhooks/admission/shootrestriction",
        _rule(_CREATE, "", "configmaps", "secrets"),
        _rule(
            _CREATE,
            GARDENER_CORE,
            "backupbuckets",
            "backupentries",
            "internalsecrets",
            "projects",
            "shoots",
        ),
        matchPolicy="Equivalent",
    )


def _webhook(name: str, path: str, *rules: JsonObject, **fields: object) -> JsonObject:
    return {
        "name": f"{name}.gardener.cloud",
        "path": path,
        "rules": list(rules),
        "admissionReviewVersions": ["v1", "v1beta1"],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        **fields,
    }


def _rule(operations: Sequence[str], group: str, *resources: str, version: str = "") -> JsonObject:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": [version or ("v1beta1" if group == GARDENER_CORE else "v1")],
        "resources": list(resources),
    }


PORT: Final = 2719
METRICS_PORT: Final = 2723

_PROGRAM: Final = Program(
    name=NAME, labels=gardener_labels("admission-controller"), priority=P400, kind=SERVER
)
_HEALTH_PORT: Final = 2722
_CERTIFICATE: Final = f"{NAME}-cert"
_CERTIFICATE_PATH: Final = f"/etc/{NAME}/srv"
_CONFIG_VOLUME: Final = f"{NAME}-config"
_CONFIG_PATH: Final = f"/etc/{NAME}/config"
_CONFIG_KEY: Final = "config.yaml"
_ROLE: Final = "gardener.cloud:system:admission-controller"
_BINDING: Final = "gardener.cloud:admission-controller"
_METRICS: Final = (
    "gardener_admission_controller_.+",
    "rest_client_.+",
    "controller_runtime_.+",
    "go_.+",
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, signed by the current authority; the API server trusts it already."""
    del landscape
    hosts = authorities.service_hosts(NAME, NAMESPACE)
    yield authorities.gardener_server(_CERTIFICATE, *hosts, use=Use.CURRENT)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, its permissions and its webhooks."""
    config = config_map(_PROGRAM, NAME, _CONFIG_KEY, configuration(landscape))
    runtime = _PROGRAM.runtime(
        config,
        deployment(
            _PROGRAM, landscape, _container(landscape), _volumes(landscape, name_of(config))
        ),
        budget(_PROGRAM),
        webhook_service(_PROGRAM, landscape, "https", PORT, METRICS_PORT),
        service_monitor(_PROGRAM, *_METRICS),
        autoscaler(_PROGRAM, memory="25Mi"),
    )
    virtual = _PROGRAM.virtual(*_permissions(), *webhooks(landscape))
    return Rendered(managed=(runtime, virtual), direct=(access_secret(NAME),))


def configuration(landscape: Landscape) -> JsonObject:
    """Return its configuration file."""
    settings = landscape.virtual.gardener.admission_controller
    server: JsonObject = {
        "webhooks": {"port": PORT, "tls": {"serverCertDir": _CERTIFICATE_PATH}},
        "healthProbes": {"port": _HEALTH_PORT},
        "metrics": {"port": METRICS_PORT},
    }
    if settings.resource_admission_configuration is not None:
        limits = settings.resource_admission_configuration.to_json()
        server["resourceAdmissionConfiguration"] = limits
    return {
        "apiVersion": "admissioncontroller.config.gardener.cloud/v1alpha1",
        "kind": "AdmissionControllerConfiguration",
        "gardenClientConnection": {"kubeconfig": KUBECONFIG_PATH, **CLIENT_CONNECTION},
        "logLevel": settings.log_level,
        "logFormat": "json",
        "server": server,
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.gardener_image(NAME),
        "args": [f"--config={_CONFIG_PATH}/{_CONFIG_KEY}"],
        **probes(_HEALTH_PORT, delay=15),
        "resources": requests(cpu="100m", memory="200Mi"),
        "volumeMounts": [
            mount(_CERTIFICATE, _CERTIFICATE_PATH, readOnly=True),
            mount(_CONFIG_VOLUME, _CONFIG_PATH),
        ],
    }


def _volumes(landscape: Landscape, config: str) -> list[JsonObject]:
    certificate = {"secretName": landscape.credentials.name(_CERTIFICATE), "defaultMode": 0o640}
    return [
        {"name": _CERTIFICATE, "secret": certificate},
        config_map_volume(_CONFIG_VOLUME, config),
    ]


def _permissions() -> list[JsonObject]:
    role, binding = cluster_role(_ROLE, _rules(), _PROGRAM.account(), labels=_PROGRAM.labels)
    metadata = {**binding["metadata"], "name": _BINDING}
    return [role, {**binding, "metadata": metadata}]


def _rules() -> list[JsonObject]:
    core = (
        "backupbuckets",
        "backupentries",
        "controllerdeployments",
        "controllerinstallations",
        "internalsecrets",
        "secretbindings",
        "seeds",
        "shoots",
        "shootstates",
        "projects",
    )
    return [
        rule(GARDENER_CORE, core, READ),
        rule("seedmanagement.gardener.cloud", ["gardenlets", "managedseeds"], READ),
        rule("operations.gardener.cloud", ["bastions"], READ),
        rule("", ["configmaps", "namespaces", "secrets", "serviceaccounts"], READ),
        rule("coordination.k8s.io", ["leases"], READ),
        rule("certificates.k8s.io", ["certificatesigningrequests"], READ),
        rule("security.gardener.cloud", ["credentialsbindings"], READ),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]


GARDENER_ADMISSION_CONTROLLER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Admission Controller",
    after=(task_names.GARDENER_API_SERVER_READY,),
    credentials=credentials,
    render=render,
    removable=_PROGRAM.removable(),
)
