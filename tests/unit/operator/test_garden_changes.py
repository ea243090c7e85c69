"""Permitted and forbidden changes of a Garden, one row each: spec 21 §7.3 and §7.5."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.rules.validation import check_garden_update
from tests.support.gardens import (
    FACTS,
    GARDENER,
    MINIMAL,
    RUNTIME,
    SERVER,
    VIRTUAL,
    with_values,
)

BACKUP: JsonObject = {"provider": "local", "bucketName": "a", "secretRef": {"name": "backup"}}
MAIN = f"{VIRTUAL}.etcd.main"
DISCOVERY = f"{GARDENER}.gardenerDiscoveryServer"
ENCRYPTION = f"{SERVER}.encryptionConfig"
GARDENER_ENCRYPTION = f"{GARDENER}.gardenerAPIServer.encryptionConfig"
AT_REST = "status.credentials.encryptionAtRest"
PHASE = "status.credentials.rotation.etcdEncryptionKey.phase"
RECONCILED = {
    "status.lastOperation": {
        "type": "Reconcile",
        "state": "Error",
        "progress": 5,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
}

Row = tuple[str, dict[str, Any], dict[str, Any], list[tuple[str, str]]]

CHANGES: list[Row] = [
    (
        "the first ingress domain stays",
        {},
        {f"{RUNTIME}.ingress.domains": [{"name": "other.example.org"}]},
        [("Invalid", f"{RUNTIME}.ingress.domains[0].name")],
    ),
    (
        "another ingress domain comes",
        {},
        {
            f"{RUNTIME}.ingress.domains": [
                {"name": "ingress.example.org"},
                {"name": "other.example.org"},
            ]
        },
        [],
    ),
    (
        "a range is appended",
        {},
        {
            f"{RUNTIME}.networking.nodes": ["10.3.0.0/16"],
            f"{RUNTIME}.networking.pods": ["10.1.0.0/16", "10.4.0.0/16"],
            f"{RUNTIME}.networking.services": ["10.2.0.0/16", "10.5.0.0/16"],
            f"{VIRTUAL}.networking.services": ["100.64.0.0/13", "fd00::/112"],
        },
        [],
    ),
    (
        "a range stays as it is",
        {},
        {
            f"{RUNTIME}.networking.pods": ["10.6.0.0/16"],
            f"{VIRTUAL}.networking.services": ["100.72.0.0/13"],
        },
        [
            ("Invalid", f"{RUNTIME}.networking.pods[0]"),
            ("Invalid", f"{VIRTUAL}.networking.services[0]"),
        ],
    ),
    (
        "a range that was written without admission is corrected",
        {
            f"{RUNTIME}.networking.pods": ["10.1.0.0/33"],
            f"{VIRTUAL}.networking.services": ["services"],
        },
        {
            f"{RUNTIME}.networking.pods": ["10.1.0.0/16"],
            f"{VIRTUAL}.networking.services": ["100.64.0.0/13"],
        },
        [],
    ),
    (
        "a version that is too new for any operator is corrected",
        {f"{VIRTUAL}.kubernetes.version": "1.99.0"},
        {f"{VIRTUAL}.kubernetes.version": "1.34.2"},
        [],
    ),
    (
        "a range is not removed",
        {
            f"{RUNTIME}.networking.nodes": ["10.3.0.0/16"],
            f"{VIRTUAL}.networking.services": ["100.64.0.0/13", "fd00::/112"],
        },
        {
            f"{RUNTIME}.networking.nodes": [],
            f"{VIRTUAL}.networking.services": ["100.64.0.0/13"],
        },
        [
            ("Forbidden", f"{RUNTIME}.networking.nodes"),
            ("Forbidden", f"{VIRTUAL}.networking.services"),
        ],
    ),
    (
        "the IP families stay",
        {},
        {f"{RUNTIME}.networking.ipFamilies": ["IPv6"]},
        [("Invalid", f"{RUNTIME}.networking.ipFamilies")],
    ),
    (
        "making the default IP family explicit changes nothing",
        {},
        {f"{RUNTIME}.networking.ipFamilies": ["IPv4"]},
        [],
    ),
    (
        "the first virtual domain stays",
        {},
        {f"{VIRTUAL}.dns.domains": [{"name": "other.example.org"}]},
        [("Invalid", f"{VIRTUAL}.dns.domains[0].name")],
    ),
    ("a backup comes", {}, {f"{MAIN}.backup": BACKUP}, []),
    (
        "a backup does not go",
        {f"{MAIN}.backup": BACKUP},
        {f"{MAIN}.backup": ...},
        [("Forbidden", f"{MAIN}.backup")],
    ),
    (
        "a backup does not go with its etcd",
        {f"{MAIN}.backup": BACKUP},
        {f"{VIRTUAL}.etcd": ...},
        [("Forbidden", f"{MAIN}.backup")],
    ),
    (
        "a backup stays where it is",
        {f"{MAIN}.backup": BACKUP},
        {f"{MAIN}.backup": BACKUP | {"provider": "b", "bucketName": "b", "region": "b"}},
        [
            ("Invalid", f"{MAIN}.backup.provider"),
            ("Invalid", f"{MAIN}.backup.bucketName"),
            ("Invalid", f"{MAIN}.backup.region"),
        ],
    ),
    (
        "the name of a bucket does not go",
        {f"{MAIN}.backup": BACKUP},
        {f"{MAIN}.backup.bucketName": ...},
        [("Invalid", f"{MAIN}.backup.bucketName")],
    ),
    (
        "volumes of an etcd keep their class",
        {f"{MAIN}.storage": {"className": "a"}, f"{VIRTUAL}.etcd.events.storage": {}},
        {
            f"{MAIN}.storage": {"className": "b"},
            f"{VIRTUAL}.etcd.events.storage": {"className": "b"},
        },
        [
            ("Invalid", f"{MAIN}.storage.className"),
            ("Invalid", f"{VIRTUAL}.etcd.events.storage.className"),
        ],
    ),
    (
        "high availability comes",
        {},
        {f"{VIRTUAL}.controlPlane": {"highAvailability": {}}},
        [],
    ),
    (
        "high availability does not go",
        {f"{VIRTUAL}.controlPlane": {"highAvailability": {}}},
        {f"{VIRTUAL}.controlPlane": ...},
        [("Invalid", f"{VIRTUAL}.controlPlane.highAvailability")],
    ),
    (
        "the identity of the garden stays",
        {},
        {f"{GARDENER}.clusterIdentity": "other"},
        [("Invalid", f"{GARDENER}.clusterIdentity")],
    ),
    (
        "the discovery server does not go",
        {DISCOVERY: {}},
        {DISCOVERY: ...},
        [("Forbidden", DISCOVERY)],
    ),
    (
        "the discovery server keeps its name",
        {DISCOVERY: {}},
        {DISCOVERY: {"domain": {"name": "keys.example.org"}}},
        [("Invalid", f"{DISCOVERY}.domain.name")],
    ),
    (
        "making the default name of the discovery server explicit changes nothing",
        {DISCOVERY: {}},
        {DISCOVERY: {"domain": {"name": "discovery.ingress.example.org"}}},
        [],
    ),
    (
        "the version goes up by a minor",
        {f"{VIRTUAL}.kubernetes.version": "1.33.9"},
        {f"{VIRTUAL}.kubernetes.version": "1.34.0"},
        [],
    ),
    (
        "the version skips no minor",
        {f"{VIRTUAL}.kubernetes.version": "1.33.9"},
        {f"{VIRTUAL}.kubernetes.version": "1.35.0"},
        [("Forbidden", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "the version does not go down by a minor",
        {f"{VIRTUAL}.kubernetes.version": "1.33.1"},
        {f"{VIRTUAL}.kubernetes.version": "1.32.9"},
        [("Forbidden", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "the version does not go down by a patch",
        {f"{VIRTUAL}.kubernetes.version": "1.33.1"},
        {f"{VIRTUAL}.kubernetes.version": "1.33.0"},
        [("Forbidden", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "accepted issuers of any form stay, as long as the list does",
        {f"{SERVER}.serviceAccountConfig": {"acceptedIssuers": ["old"]}},
        {
            f"{SERVER}.serviceAccountConfig": {
                "acceptedIssuers": ["old"],
                "issuer": "https://new.example.org",
            }
        },
        [],
    ),
    (
        "accepted issuers are checked once the list changes",
        {f"{SERVER}.serviceAccountConfig": {"acceptedIssuers": ["old"]}},
        {f"{SERVER}.serviceAccountConfig": {"acceptedIssuers": ["old", "https://a.example.org"]}},
        [("Invalid", f"{SERVER}.serviceAccountConfig.acceptedIssuers[0]")] * 2,
    ),
]

ENCRYPTION_CHANGES: list[Row] = [
    (
        "other resources are encrypted after a rotation",
        {PHASE: "Completed", AT_REST: {"resources": []}},
        {f"{ENCRYPTION}.resources": ["configmaps"]},
        [],
    ),
    (
        "other resources are not encrypted during a rotation",
        {PHASE: "Prepared"},
        {f"{ENCRYPTION}.resources": ["configmaps"]},
        [("Forbidden", f"{ENCRYPTION}.resources")],
    ),
    (
        "other resources are not encrypted before the last ones are",
        {f"{ENCRYPTION}.resources": ["configmaps"]},
        {f"{ENCRYPTION}.resources": ["pods"]},
        [("Forbidden", f"{ENCRYPTION}.resources")],
    ),
    (
        "each API server counts for itself",
        {
            f"{ENCRYPTION}.resources": ["configmaps"],
            AT_REST: {"resources": ["configmaps", "shoots.core.gardener.cloud"]},
        },
        {
            f"{ENCRYPTION}.resources": ["configmaps", "pods"],
            f"{GARDENER_ENCRYPTION}.resources": ["seeds.core.gardener.cloud"],
        },
        [("Forbidden", f"{GARDENER_ENCRYPTION}.resources")],
    ),
    (
        "reordering resources changes nothing",
        {f"{ENCRYPTION}.resources": ["pods", "configmaps"]},
        {f"{ENCRYPTION}.resources": ["configmaps", "pods"]},
        [],
    ),
    (
        "the provider changes after a reconciliation",
        RECONCILED | {AT_REST: {"provider": {"type": "aescbc"}}},
        {f"{ENCRYPTION}.provider": {"type": "secretbox"}},
        [],
    ),
    (
        "the provider does not change before the first reconciliation",
        {},
        {f"{ENCRYPTION}.provider": {"type": "secretbox"}},
        [
            ("Forbidden", f"{ENCRYPTION}.provider.type"),
            ("Forbidden", f"{GARDENER_ENCRYPTION}.provider.type"),
        ],
    ),
    (
        "the provider does not change during a rotation",
        RECONCILED | {PHASE: "Preparing"},
        {f"{ENCRYPTION}.provider": {"type": "secretbox"}},
        [
            ("Forbidden", f"{ENCRYPTION}.provider.type"),
            ("Forbidden", f"{GARDENER_ENCRYPTION}.provider.type"),
        ],
    ),
    (
        "the provider does not change before the last one is in use",
        RECONCILED | {AT_REST: {"provider": {"type": "aesgcm"}}},
        {f"{ENCRYPTION}.provider": {"type": "secretbox"}},
        [
            ("Forbidden", f"{ENCRYPTION}.provider.type"),
            ("Forbidden", f"{GARDENER_ENCRYPTION}.provider.type"),
        ],
    ),
    (
        "the provider does not change together with resources",
        RECONCILED,
        {f"{ENCRYPTION}.provider": {"type": "secretbox"}, f"{ENCRYPTION}.resources": ["pods"]},
        [("Forbidden", f"{ENCRYPTION}.provider.type")],
    ),
]

ROWS = [*CHANGES, *ENCRYPTION_CHANGES]


@pytest.mark.parametrize(
    ("before", "change", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_change(
    before: dict[str, Any], change: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    old = with_values(MINIMAL, before)
    new = with_values(old, change)

    causes = check_garden_update(garden_from(new), garden_from(old), FACTS)

    assert [(c.reason.removeprefix("FieldValue"), c.field) for c in causes] == expected
