"""The Secrets and ConfigMaps that a Garden names (spec 21 §4.2), all in its namespace."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.operator.garden.landscape import NAMESPACE

SECRET: Final = "Secret"  # noqa: S105 - a kind
CONFIG_MAP: Final = "ConfigMap"

_API_SERVERS: Final = (
    "spec.virtualCluster.kubernetes.kubeAPIServer",
    "spec.virtualCluster.gardener.gardenerAPIServer",
)
_KUBE: Final = _API_SERVERS[0]
_DASHBOARD: Final = "spec.virtualCluster.gardener.gardenerDashboard"
_DISCOVERY: Final = "spec.virtualCluster.gardener.gardenerDiscoveryServer"
_SECRETS: Final = (
    "spec.dns.providers[].secretRef.name",
    "spec.virtualCluster.etcd.main.backup.secretRef.name",
    *(f"{server}.admissionPlugins[].kubeconfigSecretName" for server in _API_SERVERS),
    *(f"{server}.auditWebhook.kubeconfigSecretName" for server in _API_SERVERS),
    f"{_KUBE}.authentication.webhook.kubeconfigSecretName",
    f"{_KUBE}.structuredAuthorization.kubeconfigs[].secretName",
    f"{_KUBE}.sni.secretName",
    f"{_DASHBOARD}.gitHub.secretRef.name",
    f"{_DASHBOARD}.oidcConfig.secretRef.name",
    f"{_DASHBOARD}.oidcConfig.certificateAuthoritySecretRef.name",
    f"{_DASHBOARD}.tlsSecretName",
    f"{_DISCOVERY}.tlsSecretName",
)
_CONFIG_MAPS: Final = (
    *(f"{server}.auditConfig.auditPolicy.configMapRef.name" for server in _API_SERVERS),
    f"{_KUBE}.structuredAuthentication.configMapName",
    f"{_KUBE}.structuredAuthorization.configMapName",
    f"{_DASHBOARD}.frontendConfigMapRef.name",
    f"{_DASHBOARD}.assetsConfigMapRef.name",
)


class Reference(NamedTuple):
    """An object that a Garden names.

    Attributes:
        kind: `Secret` or `ConfigMap`.
        field: The path of the field with its name, such as `spec.dns.providers[0].secretRef.name`.
    """

    kind: str
    key: Key
    field: str


def references_of(garden: JsonObject) -> list[Reference]:
    """Return everything that a Garden names; once for each field, empty names left out.

    Values of a wrong type are left out as well: the Garden may have been written without a schema.
    """
    found = [
        Reference(kind, Key(NAMESPACE, name), field)
        for kind, paths in ((SECRET, _SECRETS), (CONFIG_MAP, _CONFIG_MAPS))
        for path in paths
        for field, name in _texts(garden, path)
    ]
    return [*found, *_resources(garden)]


def _resources(garden: JsonObject) -> Iterator[Reference]:
    """Yield the Secrets and ConfigMaps among the objects that extensions refer to by a name."""
    for field, resource in _values(garden, "spec.resources[].resourceRef"):
        if not isinstance(resource, dict) or resource.get("apiVersion") != "v1":
            continue
        kind, name = resource.get("kind"), resource.get("name")
        if kind in (SECRET, CONFIG_MAP) and isinstance(name, str) and name:
            yield Reference(str(kind), Key(NAMESPACE, name), f"{field}.name")


def _texts(garden: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    for field, value in _values(garden, path):
        if isinstance(value, str) and value:
            yield field, value


def _values(garden: JsonObject, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the values at a path with their own paths; `[]` stands for each item of a list."""
    found: list[tuple[str, JsonValue]] = [("", garden)]
    for step in path.split("."):
        name, is_list = step.removesuffix("[]"), step.endswith("[]")
        found = [
            (f"{field}.{name}".removeprefix("."), value[name])
            for field, value in found
            if isinstance(value, dict) and name in value
        ]
        if is_list:
            found = [
                (f"{field}[{index}]", item)
                for field, value in found
                if isinstance(value, list)
                for index, item in enumerate(value)
            ]
    yield from found
