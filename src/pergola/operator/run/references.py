"""The Secrets and ConfigMaps that a Garden names (spec 21 §4.2), all in its namespace."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.controllers.references import (
    CONFIG_MAP,
    SECRET,
    Reference,
    Referrer,
    names_at,
    resources_at,
)
from pergola.garden.landscape import NAMESPACE

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


def references_of(garden: JsonObject) -> list[Reference]:
    """Return all references of a Garden, one for each field, without empty names.

    Values of a wrong type are also skipped: the Garden may have been written without a schema.
    """
    return [
        *names_at(garden, _SECRETS, SECRET, NAMESPACE),
        *names_at(garden, _CONFIG_MAPS, CONFIG_MAP, NAMESPACE),
        *resources_at(garden, "spec.resources[].resourceRef", NAMESPACE),
    ]


GARDEN_REFERENCES: Final = Referrer(
    GARDEN, "garden-reference", references_of, handled_by=marks.OPERATOR_FINALIZER
)
"""The objects that Gardens name are protected until the deletion has ended (spec 21 §4.5)."""
