"""The ManagedResource API on a real API server (spec 10 §2)."""

from pathlib import Path

import orjson
import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE, ManagedResource
from pergola.api.schema import schema_of, validate
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.crds.app import crds
from pergola.cli.crds.groups import definitions
from pergola.cli.crds.install import install
from pergola.kube.client import Client
from pergola.kube.errors import Invalid

KEY = Key("", "managedresources.resources.gardener.cloud")
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.fixture(autouse=True)
async def installed(cluster_client: Client) -> None:
    await install(cluster_client)


def managed_resource(namespace: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {"namespace": namespace, "generateName": "mr-"},
        "spec": spec,
    }


async def test_the_api_server_reports_no_problems_of_the_crd(cluster_client: Client) -> None:
    crd = await cluster_client.get(CRD, KEY)

    conditions = {c["type"]: c["status"] for c in maps_at(crd, "status", "conditions")}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    [version] = maps_at(crd, "spec", "versions")
    [declared] = definitions()[0]["spec"]["versions"]
    assert version["schema"] == declared["schema"]


async def test_installing_again_changes_nothing(cluster_client: Client) -> None:
    before = await cluster_client.get(CRD, KEY)

    await install(cluster_client)

    after = await cluster_client.get(CRD, KEY)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


SPECS: list[tuple[JsonObject, bool]] = [
    ({}, False),
    ({"secretRefs": []}, True),
    ({"secretRefs": [{}]}, True),
    ({"secretRefs": [{"name": None}]}, True),
    ({"secretRefs": None}, False),
    ({"secretRefs": "a"}, False),
    ({"secretRefs": [{"name": 1}]}, False),
    ({"secretRefs": [], "class": ""}, True),
    ({"secretRefs": [], "class": 1}, False),
    ({"secretRefs": [], "keepObjects": "true"}, False),
    ({"secretRefs": [], "injectLabels": {"a": "b"}}, True),
    ({"secretRefs": [], "injectLabels": {"a": 1}}, False),
    ({"secretRefs": [], "equivalences": [[{"kind": "X"}]]}, False),
    ({"secretRefs": [], "equivalences": [[{"group": "", "kind": "X"}], []]}, True),
    ({"secretRefs": [], "somethingNewer": True}, True),
]


@pytest.mark.parametrize(("spec", "accepted"), SPECS)
async def test_our_validation_agrees_with_the_api_server(
    cluster_client: Client, namespace: str, spec: JsonObject, accepted: bool
) -> None:
    obj = managed_resource(namespace, spec)
    errors = [f for f in validate(schema_of(ManagedResource), obj) if f.severity == "error"]

    try:
        await cluster_client.create(obj)
    except Invalid as refusal:
        reported = {cause["field"] for cause in refusal.causes}
    else:
        reported = set()

    assert (not errors, not reported) == (accepted, accepted)
    # Keys of maps are bracketed here, as for built-in kinds: they may contain dots.
    assert {finding.path.replace("[a]", ".a") for finding in errors} == reported


async def test_a_secret_ref_without_a_name_is_stored_with_an_empty_name(
    cluster_client: Client, namespace: str
) -> None:
    stored = await cluster_client.create(managed_resource(namespace, {"secretRefs": [{}]}))

    assert stored["spec"]["secretRefs"] == [{"name": ""}]


async def test_kubectl_prints_the_documented_columns(
    cluster_client: Client, namespace: str
) -> None:
    created = await cluster_client.create(
        managed_resource(namespace, {"secretRefs": [], "class": "seed"})
    )
    time = "2026-03-01T12:00:00Z"
    conditions = [
        {
            "type": f"Resources{name}",
            "status": status,
            "reason": "R",
            "message": "",
            "lastTransitionTime": time,
            "lastUpdateTime": time,
        }
        for name, status in (("Healthy", "False"), ("Progressing", "Unknown"), ("Applied", "True"))
    ]
    await cluster_client.update(
        {**created, "status": {"conditions": conditions}}, subresource="status"
    )

    resource = await cluster_client.resource(MANAGED_RESOURCE)
    table = orjson.loads(
        await cluster_client._transport.request("GET", resource.collection(namespace), accept=TABLE)
    )

    assert [column["name"].upper() for column in table["columnDefinitions"]] == [
        "NAME",
        "CLASS",
        "APPLIED",
        "HEALTHY",
        "PROGRESSING",
        "AGE",
    ]
    assert table["rows"][0]["cells"][1:5] == ["seed", "True", "False", "Unknown"]


def test_crds_apply_installs_the_definitions(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crds(apply=True, cluster=ClusterOptions(kubeconfig=kubeconfig))

    assert capsys.readouterr().out.splitlines() == [
        f"{name_of(definition)} is installed and served" for definition in definitions()
    ]
