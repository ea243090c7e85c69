"""A landscape for tests of components: a Garden, and credentials without a cluster."""

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import garden_from
from pergola.bundle.image_vector import ImageVector
from pergola.garden.components.authorities import authorities
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Rendered
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential, Credentials
from pergola.kube.patches import apply_merge_patch
from pergola.resource_manager.registration import garden_webhooks
from pergola.secrets_manager import Generated, ManagedSecret

GARDEN: Final[JsonObject] = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Garden",
    "metadata": {
        "name": "garden",
        "uid": "8a9b0f0e-1f43-4d6a-9a53-9ba7d4c4f7f5",
        "creationTimestamp": "2026-01-01T12:34:00Z",
    },
    "spec": {
        "runtimeCluster": {
            "ingress": {
                "domains": [{"name": "ingress.runtime-garden.local.gardener.cloud"}],
                "controller": {"kind": "nginx"},
            },
            "networking": {"pods": ["10.1.0.0/16"], "services": ["10.2.0.0/16"]},
            "provider": {"zones": ["a", "b", "c"]},
            "settings": {
                "loadBalancerServices": {"annotations": {"foo": "bar"}},
                "verticalPodAutoscaler": {"enabled": True},
            },
        },
        "virtualCluster": {
            "dns": {"domains": [{"name": "virtual-garden.local.gardener.cloud"}]},
            "gardener": {
                "clusterIdentity": "test",
                "gardenerDashboard": {"terminal": {"container": {"image": "busybox:latest"}}},
            },
            "kubernetes": {
                "version": "1.31.1",
                "kubeAPIServer": {
                    "sni": {"domainPatterns": ["api.garden.local-test.gardener.cloud"]}
                },
            },
            "maintenance": {"timeWindow": {"begin": "220000+0100", "end": "230000+0100"}},
            "networking": {"services": ["100.64.0.0/13"]},
        },
    },
}
"""A Garden without high availability, backup and DNS providers, with a dashboard and terminals."""
HIGHLY_AVAILABLE: Final[JsonObject] = {
    "spec": {"virtualCluster": {"controlPlane": {"highAvailability": {}}}}
}

BACKED_UP: Final[JsonObject] = {
    "spec": {
        "virtualCluster": {
            "etcd": {
                "main": {
                    "backup": {
                        "provider": "local",
                        "region": "local",
                        "bucketName": "bucket",
                        "secretRef": {"name": "backup"},
                    }
                }
            }
        }
    }
}

COMPLETE: Final[JsonObject] = {
    "spec": {"virtualCluster": {"gardener": {"gardenerDiscoveryServer": {}}}}
}
"""Adds the components that `GARDEN` does not have."""

PUBLIC_KEY: Final = b"""-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAo+QClFPO5vePssPC9XYB
zhU4CNjiEA58mSPzKOpwpR9Zr4qz/nzJY2Xkde0RxWhZZ2foRV9Y39dMfL1BouVC
2FRkwwZ9Z0OTJhsg6ycxyNACUMPEn/2E/difdqlD3ZcxumnAEr87Stq7cKyco1GZ
dInsJ8XOpXWtwEeqUq2E8r9bYpplb3uQLXkfCpJDB106jjDzvK1iQT23sKExg68n
HAvy788HQq9W4J35ND05e6qL8OsLgXsaNCBqpZ2KmiH7C6dSU317iv2f4sRQUnmH
t63PD+GK6yukyn2mhh/KKYkown4uxxYrrMTRmOqabPmdQ1MUs/X7/XCq/Xnpvm9W
XQIDAQAB
-----END PUBLIC KEY-----
"""
"""In the bundle of every signing key."""

_BUNDLES: Final = {"bundle.crt": b"bundle", "bundle.key": PUBLIC_KEY}
WILDCARD_CERTIFICATE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "wildcard", "namespace": "garden"},
    "data": {
        key: base64.b64encode(key.encode()).decode() for key in ("ca.crt", "tls.crt", "tls.key")
    },
}

_HASH: Final = re.compile(r"-[0-9a-f]{8}$")
_NOW: Final = datetime(2026, 1, 1, 12, 34, tzinfo=UTC)
_ETCD_CONFIG: Final[JsonObject] = {
    "etcdController": {"workers": 50},
    "custodianController": {"workers": 10},
    "backupCompactionController": {
        "workers": 3,
        "enableBackupCompaction": False,
        "eventsThreshold": 1000000,
        "activeDeadlineDuration": "3h",
        "metricsScrapeWaitDuration": "60s",
    },
}
_GATES: Final = {
    "BackupEntryForGarden": True,
    "DefaultSeccompProfile": False,
    "DisableNginxIngressInGarden": True,
    "HVPA": False,
    "IstioTLSTermination": True,
    "OpenTelemetryCollector": True,
    "PrometheusHealthChecks": False,
    "RemoveVali": False,
    "VictoriaLogsBackend": False,
}


def identities(rendered: Rendered) -> dict[str, set[str]]:
    """Return the identities of objects, by ManagedResource; direct ones under `direct`.

    An identity is `Kind namespace/name`; the hash at the end of a unique name is `*`.
    """
    groups = {each.name: each.objects for each in rendered.managed}
    if rendered.direct:
        groups["direct"] = rendered.direct
    return {
        name: {f"{obj['kind']} {_HASH.sub('-*', str(Key.of(obj)))}" for obj in objects}
        for name, objects in groups.items()
    }


def landscape(*patches: JsonObject, **attributes: Any) -> Landscape:
    """Return the landscape of `GARDEN` with merge patches applied to it.

    Args:
        attributes: Attributes of the landscape that differ.
    """
    garden = GARDEN
    for patch in patches:
        garden = apply_merge_patch(garden, patch)
    images = files("pergola.garden.components") / "images.yaml"
    given: dict[str, Any] = {
        "garden": garden_from(garden),
        "runtime_version": "1.34.1",
        "gardener_version": "v1.150.0",
        "images": ImageVector.load(images.read_bytes()),
        "webhook_configurations": garden_webhooks,
        "feature_gates": _GATES,
        "etcd_config": _ETCD_CONFIG,
        "gardener_api_server_address": "10.2.0.200",
        "wildcard_certificate": WILDCARD_CERTIFICATE,
        **attributes,
    }
    bare = Landscape(**given)
    found = dict(_generated(authorities()))
    for component in CATALOG:
        so_far = bare.with_credentials(Credentials(found))
        if component.absent(so_far) is None:
            found = {**found, **dict(_generated(component.credentials(so_far)))}
    return bare.with_credentials(Credentials(found))


def _generated(desired: Iterable[Credential]) -> Iterable[tuple[str, Generated]]:
    for credential in desired:
        config = credential.config
        bundle = _secret(
            f"{config.name}-bundle", {config.bundle_key: _BUNDLES.get(config.bundle_key, b"")}
        )
        yield (
            config.name,
            Generated(
                _secret(config.name, _data(config.name)),
                bundle=bundle if config.bundle_key else None,
            ),
        )


def _data(name: str) -> dict[str, bytes]:
    keys = (
        "auth",
        "ca.crt",
        "ca.key",
        "id_rsa",
        "key",
        "kubeconfig",
        "password",
        "secret",
        "static_tokens.csv",
        "tls.crt",
        "tls.key",
        "token",
        "username",
    )
    values = {key: f"{key} of {name}".encode() for key in keys}
    return {**values, "provider": b"", "encoding": b"none"}


def _secret(name: str, data: Mapping[str, bytes]) -> ManagedSecret:
    issued = str(int(_NOW.timestamp()))
    until = str(int((_NOW + timedelta(days=30)).timestamp()))
    labels = {"name": name, "issued-at-time": issued, "valid-until-time": until}
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-0123abcd", "namespace": "garden", "labels": labels},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    return ManagedSecret(obj, dict(data))
