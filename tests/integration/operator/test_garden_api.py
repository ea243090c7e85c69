"""Gardens and the operator's Extensions on a real API server: spec 20 §4, §5, spec 21 §1.1."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.api.operator_v1alpha1 import (
    GARDEN,
    Garden,
    extension_crd,
    garden_crd,
    garden_from,
)
from pergola.api.schema import schema_of
from pergola.api.schema.nulls import without_nulls
from pergola.kube.client import Client
from pergola.kube.errors import Invalid
from pergola.kube.yaml import parse
from tests.support.gardens import GARDENER, MINIMAL, RUNTIME, SERVER, VIRTUAL, with_values

EXAMPLES = Path(__file__).parents[3] / "examples" / "garden"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
WINDOW = f"{VIRTUAL}.maintenance.timeWindow"
BACKUP = {"provider": "local", "bucketName": "a", "region": "b", "secretRef": {"name": "c"}}
TIMES = {
    "lastInitiationTime": "2026-01-01T00:00:00Z",
    "lastInitiationFinishedTime": "2026-01-01T01:00:00Z",
    "lastCompletionTriggeredTime": "2026-01-02T00:00:00Z",
    "lastCompletionTime": "2026-01-02T01:00:00Z",
}
STATUS: JsonObject = {
    "conditions": [
        {
            "type": "RuntimeComponentsHealthy",
            "status": "Progressing",
            "reason": "Why",
            "message": "For people.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "codes": ["ERR_INFRA_UNAUTHORIZED"],
        }
    ],
    "gardener": {"id": "a", "name": "gardener-operator-0", "version": "v1.150.0"},
    "lastOperation": {
        "type": "Reconcile",
        "state": "Processing",
        "progress": 50,
        "description": "Waiting.",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    },
    "lastErrors": [
        {
            "description": "It failed.",
            "codes": ["ERR_INFRA_UNAUTHORIZED"],
            "taskID": "Deploying etcds",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }
    ],
    "observedGeneration": 1,
    "credentials": {
        "rotation": {
            "certificateAuthorities": {
                "phase": "Completed",
                "pendingWorkersRollouts": [{"name": "a"}],
                **TIMES,
            },
            "serviceAccountKey": {"phase": "Completed", **TIMES},
            "etcdEncryptionKey": {
                "phase": "Completed",
                "autoCompleteAfterPrepared": True,
                **TIMES,
            },
            "observability": {"lastInitiationTime": "2026-01-01T00:00:00Z"},
            "workloadIdentityKey": {"phase": "Completed", **TIMES},
        },
        "encryptionAtRest": {"resources": ["configmaps"], "provider": {"type": "aescbc"}},
    },
    "encryptedResources": ["configmaps"],
    "advertisedAddresses": [{"name": "virtual-garden", "url": "https://api.example.org"}],
}


def example(name: str) -> JsonObject:
    garden = parse((EXAMPLES / name).read_text())
    assert isinstance(garden, dict)
    return garden


@pytest.mark.parametrize(
    "declared", [garden_crd(), extension_crd()], ids=lambda crd: crd["metadata"]["name"]
)
async def test_the_api_server_reports_no_problems_of_a_crd(
    runtime: Client, declared: JsonObject
) -> None:
    crd = await runtime.get(CRD, Key("", declared["metadata"]["name"]))

    conditions = {c["type"]: c["status"] for c in maps_at(crd, "status", "conditions")}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    [version] = maps_at(crd, "spec", "versions")
    assert version["schema"] == declared["spec"]["versions"][0]["schema"]


async def test_a_garden_with_every_field_is_stored_as_written(runtime: Client) -> None:
    garden = example("every-field.yaml")

    stored = await runtime.create(garden)

    assert contains(stored["spec"], garden["spec"])
    assert garden_from(stored).spec == garden_from(garden).spec


async def test_the_api_server_drops_the_nulls_that_offline_validation_drops(
    runtime: Client,
) -> None:
    optional = {
        "spec.dns": None,
        "spec.extensions": [{"type": "a", "providerConfig": None}],
        f"{RUNTIME}.settings": None,
        f"{RUNTIME}.networking.blockCIDRs": None,
        f"{GARDENER}.gardenerDiscoveryServer": None,
        f"{GARDENER}.gardenerAPIServer": {"featureGates": {"a": None, "b": True}},
        f"{SERVER}.sni": {"secretName": None, "domainPatterns": ["a"]},
    }
    written = with_values(MINIMAL, optional)
    stored = await runtime.create(written)

    assert contains(stored["spec"], without_nulls(schema_of(Garden), written)["spec"])
    assert without_nulls(schema_of(Garden), stored) == stored


async def test_a_status_with_every_field_is_stored_as_written(runtime: Client) -> None:
    await runtime.create(MINIMAL)

    stored = await runtime.patch(
        GARDEN, Key("", "minimal"), {"status": STATUS}, subresource="status"
    )

    assert stored["status"] == STATUS
    status = garden_from(stored).status
    assert status is not None
    assert status.credentials is not None


async def test_the_schema_adds_defaults_to_a_minimal_garden(runtime: Client) -> None:
    objects = with_values(
        MINIMAL,
        {
            f"{RUNTIME}.settings": {"verticalPodAutoscaler": {}},
            f"{VIRTUAL}.etcd": {"main": {"storage": {}}, "events": {"storage": {}}},
            f"{SERVER}": {
                "auditWebhook": {"kubeconfigSecretName": "a"},
                "authentication": {"webhook": {"kubeconfigSecretName": "a"}},
            },
            f"{VIRTUAL}.kubernetes.kubeControllerManager": {},
            f"{GARDENER}.gardenerAdmissionController": {},
            f"{GARDENER}.gardenerControllerManager": {},
            f"{GARDENER}.gardenerScheduler": {},
            f"{GARDENER}.gardenerDashboard": {
                "ingress": {},
                "gitHub": {"organisation": "a", "repository": "b", "secretRef": {"name": "c"}},
            },
        },
    )

    stored = await runtime.create(objects)

    runtime_cluster, virtual = stored["spec"]["runtimeCluster"], stored["spec"]["virtualCluster"]
    dashboard = virtual["gardener"]["gardenerDashboard"]
    server = virtual["kubernetes"]["kubeAPIServer"]
    assert runtime_cluster["settings"]["verticalPodAutoscaler"] == {"enabled": True}
    assert virtual["etcd"]["main"]["storage"] == {"capacity": "10Gi"}
    assert virtual["etcd"]["events"]["storage"] == {"capacity": "10Gi"}
    assert server["auditWebhook"]["batchMaxSize"] == 30
    assert server["auditWebhook"]["version"] == "audit.k8s.io/v1"
    assert server["authentication"]["webhook"]["version"] == "v1beta1"
    assert virtual["kubernetes"]["kubeControllerManager"] == {"certificateSigningDuration": "48h"}
    assert virtual["gardener"]["gardenerAdmissionController"] == {"logLevel": "info"}
    assert virtual["gardener"]["gardenerControllerManager"] == {"logLevel": "info"}
    assert virtual["gardener"]["gardenerScheduler"] == {
        "logLevel": "info",
        "strategy": "SameRegion",
    }
    assert (dashboard["enableTokenLogin"], dashboard["logLevel"]) == (True, "info")
    assert dashboard["gitHub"]["apiURL"] == "https://api.github.com"
    assert dashboard["ingress"] == {"enabled": True}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"backup": BACKUP | {"provider": "x"}}, "backup.provider", "Provider is immutable"),
        ({"backup": BACKUP | {"bucketName": "x"}}, "backup.bucketName", "BucketName is immutable"),
        ({"backup": BACKUP | {"region": "x"}}, "backup.region", "Region is immutable"),
    ],
)
async def test_the_location_of_a_backup_is_immutable(
    runtime: Client, change: dict[str, Any], field: str, message: str
) -> None:
    await runtime.create(with_values(MINIMAL, {f"{VIRTUAL}.etcd.main.backup": BACKUP}))

    with pytest.raises(Invalid) as raised:
        await runtime.patch(
            GARDEN,
            Key("", "minimal"),
            {"spec": {"virtualCluster": {"etcd": {"main": change}}}},
        )

    [cause] = raised.value.causes
    assert cause["field"] == f"{VIRTUAL}.etcd.main.{field}"
    assert message in cause["message"]


async def test_the_identity_of_a_garden_is_immutable(runtime: Client) -> None:
    await runtime.create(MINIMAL)

    with pytest.raises(Invalid) as raised:
        await runtime.patch(
            GARDEN,
            Key("", "minimal"),
            {"spec": {"virtualCluster": {"gardener": {"clusterIdentity": "x"}}}},
        )

    [cause] = raised.value.causes
    assert (cause["field"], "Value is immutable" in cause["message"]) == (
        f"{GARDENER}.clusterIdentity",
        True,
    )


SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"spec": ...}, "spec"),
    ({f"{RUNTIME}.ingress.controller": {"kind": "traefik"}}, f"{RUNTIME}.ingress.controller.kind"),
    ({f"{RUNTIME}.ingress.domains": []}, f"{RUNTIME}.ingress.domains"),
    ({f"{RUNTIME}.networking.pods": []}, f"{RUNTIME}.networking.pods"),
    ({f"{RUNTIME}.provider": ...}, f"{RUNTIME}.provider"),
    ({f"{RUNTIME}.volume": {"minimumSize": "a lot"}}, f"{RUNTIME}.volume.minimumSize"),
    (
        {f"{VIRTUAL}.maintenance.timeWindow.begin": "10pm"},
        f"{VIRTUAL}.maintenance.timeWindow.begin",
    ),
    ({f"{VIRTUAL}.kubernetes.version": ""}, f"{VIRTUAL}.kubernetes.version"),
    ({f"{SERVER}.eventTTL": "a while"}, f"{SERVER}.eventTTL"),
    (
        {f"{SERVER}.authentication": {"webhook": {"kubeconfigSecretName": "a", "cacheTTL": "-1s"}}},
        f"{SERVER}.authentication.webhook.cacheTTL",
    ),
    (
        {f"{SERVER}.auditWebhook": {"kubeconfigSecretName": "a", "batchMaxSize": 0}},
        f"{SERVER}.auditWebhook.batchMaxSize",
    ),
    (
        {f"{GARDENER}.gardenerAPIServer": {"goAwayChance": 0.021}},
        f"{GARDENER}.gardenerAPIServer.goAwayChance",
    ),
    (
        {f"{GARDENER}.gardenerScheduler": {"strategy": "Random"}},
        f"{GARDENER}.gardenerScheduler.strategy",
    ),
    ({"spec.dns": {"providers": []}}, "spec.dns.providers"),
    ({"spec.extensions": [{"type": ""}]}, "spec.extensions[0].type"),
]


@pytest.mark.parametrize(("values", "field"), SCHEMA, ids=[row[1] for row in SCHEMA])
async def test_the_schema_rejects_invalid_values(
    runtime: Client, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as raised:
        await runtime.create(with_values(MINIMAL, values))

    assert field in {cause["field"] for cause in raised.value.causes}


async def test_spec_and_status_are_written_separately(runtime: Client) -> None:
    await runtime.create(MINIMAL | {"status": STATUS})

    created = await runtime.get(GARDEN, Key("", "minimal"))
    other_version = {"kubernetes": {"version": "1.35.0"}}
    written = await runtime.patch(
        GARDEN,
        Key("", "minimal"),
        {"spec": {"virtualCluster": other_version}, "status": {"observedGeneration": 7}},
        subresource="status",
    )

    assert "status" not in created
    assert written["spec"] == created["spec"]
    assert written["status"] == {"observedGeneration": 7}


async def test_the_columns_show_version_operation_and_health(runtime: Client) -> None:
    await runtime.create(MINIMAL)
    await runtime.patch(GARDEN, Key("", "minimal"), {"status": STATUS}, subresource="status")

    resource = await runtime.resource(GARDEN)
    table = orjson.loads(
        await runtime._transport.request("GET", resource.collection(), accept=TABLE)
    )

    assert [column["name"].upper() for column in table["columnDefinitions"]] == [
        "NAME",
        "K8S VERSION",
        "GARDENER VERSION",
        "LAST OPERATION",
        "RUNTIME",
        "VIRTUAL",
        "API SERVER",
        "OBSERVABILITY",
        "AGE",
    ]
    assert table["rows"][0]["cells"][:8] == [
        "minimal",
        "1.34.2",
        "v1.150.0",
        "Processing",
        "Progressing",
        None,
        None,
        None,
    ]


def contains(stored: Any, written: Any) -> bool:
    """Return whether a stored value contains the written one, perhaps with defaults."""
    if isinstance(written, dict):
        return all(
            name in stored and contains(stored[name], value) for name, value in written.items()
        )
    if isinstance(written, list) and isinstance(stored, list):
        return len(stored) == len(written) and all(map(contains, stored, written))
    return bool(stored == written)
