"""The operator's webhooks, called by a real API server: spec 20 §6, spec 21 §6 to §9."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, NAMESPACE
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN, default_garden
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, Invalid, NotFound
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse
from tests.support.documented.symptoms import symptom
from tests.support.gardens import MINIMAL, RUNTIME, SERVER, VIRTUAL, with_values
from tests.support.operator_site import OperatorSite

EXAMPLES = Path(__file__).parents[3] / "examples" / "garden"
KEY = Key("", "minimal")
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
REFERENCE = "auditConfig.auditPolicy.configMapRef"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"
GARDENS = ["gardens"]

VALIDATIONS: list[tuple[str, str, list[tuple[list[str], list[str]]]]] = [
    (
        "garden-validation.operator.gardener.cloud",
        "/webhooks/validate-operator-gardener-cloud-v1alpha1-garden",
        [(["CREATE", "UPDATE", "DELETE"], GARDENS)],
    ),
    (
        "extension-validation.operator.gardener.cloud",
        "/webhooks/validate-operator-gardener-cloud-v1alpha1-extension",
        [(["CREATE", "UPDATE", "DELETE"], ["extensions"])],
    ),
    (
        "namespace-deletion-validation.operator.gardener.cloud",
        "/webhooks/validate-core-v1-namespace",
        [(["DELETE"], ["namespaces"])],
    ),
    (
        "audit-policies.operator.gardener.cloud",
        "/webhooks/audit-policies",
        [(["CREATE", "UPDATE"], GARDENS), (["UPDATE"], ["configmaps"])],
    ),
]
DEFAULTS: list[tuple[str, str, list[tuple[list[str], list[str]]]]] = [
    (
        "garden-defaulting.operator.gardener.cloud",
        "/webhooks/default-operator-gardener-cloud-v1alpha1-garden",
        [(["CREATE", "UPDATE", "DELETE"], GARDENS)],
    ),
    (
        "extension-defaulting.operator.gardener.cloud",
        "/webhooks/default-operator-gardener-cloud-v1alpha1-extension",
        [(["CREATE", "UPDATE"], ["extensions"])],
    ),
]


async def registered(client: Client, gvk: Any) -> list[JsonObject]:
    found = await client.get(gvk, Key("", "gardener-operator"))
    webhooks: list[JsonObject] = found["webhooks"]
    return webhooks


@pytest.mark.parametrize(("gvk", "expected"), [(VALIDATING, VALIDATIONS), (MUTATING, DEFAULTS)])
async def test_all_webhooks_are_registered_as_in_the_original(
    site: OperatorSite, gvk: Any, expected: list[Any]
) -> None:
    webhooks = await registered(site.client, gvk)

    assert [
        (
            webhook["name"],
            "/" + webhook["clientConfig"]["url"].split("/", 3)[3],
            [(rule["operations"], rule["resources"]) for rule in webhook["rules"]],
        )
        for webhook in webhooks
    ] == expected
    for webhook in webhooks:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["matchPolicy"] == "Exact"
        assert webhook["timeoutSeconds"] == 10
        assert webhook["admissionReviewVersions"] == ["v1", "v1beta1"]
        assert webhook["sideEffects"] == "None"
        conditions = [each["name"] for each in webhook["matchConditions"]]
        assert conditions[-2:] == ["break-glass.write", "break-glass.deletion"]


async def test_in_a_cluster_the_api_server_calls_webhooks_through_the_service(
    runtime: Client,
) -> None:
    for configuration in OperatorSite(runtime).webhooks(url="").configurations(b"authority"):
        for webhook in configuration["webhooks"]:
            service = webhook["clientConfig"]["service"]

            assert webhook["clientConfig"]["caBundle"] == "YXV0aG9yaXR5"
            assert (service["namespace"], service["name"]) == ("garden", "gardener-operator")
            assert service["port"] == 443
            assert service["path"].startswith("/webhooks/")


async def test_a_minimal_garden_is_stored_with_all_defaults(site: OperatorSite) -> None:
    stored = await site.client.create(MINIMAL)

    expected = default_garden(MINIMAL)["spec"]
    manager = expected["virtualCluster"]["kubernetes"]["kubeControllerManager"]
    manager["certificateSigningDuration"] = "48h"
    assert stored["spec"] == expected


async def test_domains_in_the_form_of_an_earlier_version_become_objects(site: OperatorSite) -> None:
    older = with_values(
        MINIMAL,
        {
            f"{RUNTIME}.ingress.domains": ["ingress.example.org"],
            f"{VIRTUAL}.dns.domains": ["garden.example.org"],
        },
    )

    stored = await site.client.create(older)

    assert stored["spec"]["virtualCluster"]["dns"]["domains"] == [{"name": "garden.example.org"}]


@pytest.mark.parametrize("name", ["garden.yaml", "every-field.yaml"])
async def test_the_examples_are_admitted(site: OperatorSite, name: str) -> None:
    garden = parse((EXAMPLES / name).read_text())
    assert isinstance(garden, dict)
    if name == "every-field.yaml":
        await site.client.create(extension("certificates"))
        await site.client.apply(config_map("audit-policy", POLICY), manager="test")

    stored = await site.client.create(garden, dry_run=True)

    assert name_of(stored) == name_of(garden)


async def test_a_second_garden_is_refused(site: OperatorSite) -> None:
    await site.client.create(MINIMAL)

    with pytest.raises(ApiError) as raised:
        await site.client.create(with_values(MINIMAL, {"metadata.name": "second"}))

    assert (raised.value.code, raised.value.reason) == (400, "BadRequest")
    assert str(raised.value).endswith(
        "there can be only one operator.gardener.cloud/v1alpha1.Garden resource in the system at "
        "a time"
    )


@pytest.mark.parametrize(
    "finalizer", ["gardener.cloud/operator", "gardener.cloud/reference-protection"]
)
async def test_a_finalizer_of_the_operator_is_refused_on_creation(
    site: OperatorSite, finalizer: str
) -> None:
    with pytest.raises(ApiError) as raised:
        await site.client.create(with_values(MINIMAL, {"metadata.finalizers": [finalizer]}))

    assert raised.value.code == 400


async def test_one_refusal_lists_all_violations_and_stores_nothing(site: OperatorSite) -> None:
    broken = with_values(
        MINIMAL,
        {
            f"{VIRTUAL}.dns.domains": [{"name": "A"}],
            f"{RUNTIME}.networking.services": ["10.1.0.0/16"],
            f"{SERVER}.encryptionConfig": {"resources": ["ConfigMaps"]},
        },
    )

    with pytest.raises(Invalid) as raised:
        await site.client.create(broken)

    assert [cause["field"] for cause in raised.value.causes] == [
        f"{RUNTIME}.networking.pods[0]",
        f"{VIRTUAL}.dns.domains[0].name",
        f"{SERVER}.encryptionConfig.resources[0]",
    ]
    with pytest.raises(NotFound):
        await site.client.get(GARDEN, KEY)


async def test_a_dry_run_gets_the_whole_verdict(site: OperatorSite) -> None:
    with pytest.raises(Invalid):
        await site.client.create(with_values(MINIMAL, {f"{SERVER}.eventTTL": "25h"}), dry_run=True)


async def test_a_deletion_has_to_be_confirmed(site: OperatorSite) -> None:
    await site.client.create(MINIMAL)

    for value in ("false", "yes"):
        annotations = {"confirmation.gardener.cloud/deletion": value}
        await site.client.patch(GARDEN, KEY, {"metadata": {"annotations": annotations}})
        with pytest.raises(Forbidden, match=symptom("A Garden is not deleted")):
            await site.client.delete(GARDEN, KEY)
    await site.client.patch(GARDEN, KEY, {"metadata": {"annotations": CONFIRMED}})

    assert await site.client.delete(GARDEN, KEY)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"runtimeCluster": {"networking": {"pods": ["10.4.0.0/16"]}}},
            f"{RUNTIME}.networking.pods[0]",
        ),
        (
            {"virtualCluster": {"kubernetes": {"version": "1.36.0"}}},
            f"{VIRTUAL}.kubernetes.version",
        ),
        (
            {"virtualCluster": {"dns": {"domains": [{"name": "other.example.org"}]}}},
            f"{VIRTUAL}.dns.domains[0].name",
        ),
    ],
)
async def test_immutable_fields_cannot_be_changed(
    site: OperatorSite, change: JsonObject, field: str
) -> None:
    await site.client.create(MINIMAL)

    with pytest.raises(Invalid) as raised:
        await site.client.patch(GARDEN, KEY, {"spec": change})

    assert [cause["field"] for cause in raised.value.causes] == [field]


async def test_ranges_can_be_appended(site: OperatorSite) -> None:
    await site.client.create(MINIMAL)
    pods = ["10.1.0.0/16", "10.4.0.0/16"]

    stored = await site.client.patch(
        GARDEN, KEY, {"spec": {"runtimeCluster": {"networking": {"pods": pods}}}}
    )

    assert stored["spec"]["runtimeCluster"]["networking"]["pods"] == pods


async def test_an_operation_is_refused_in_the_wrong_phase(site: OperatorSite) -> None:
    await site.client.create(MINIMAL)
    rotation = {"certificateAuthorities": {"phase": "Preparing"}}
    await site.client.patch(
        GARDEN, KEY, {"status": {"credentials": {"rotation": rotation}}}, subresource="status"
    )

    with pytest.raises(Invalid, match="is not 'Prepared'") as raised:
        await request(site.client, "rotate-ca-complete")

    assert raised.value.causes[0]["field"] == "metadata.annotations[gardener.cloud/operation]"
    await request(site.client, "rotate-observability-credentials;reconcile")


@asynccontextmanager
async def unanswered(runtime: Client) -> AsyncGenerator[None]:
    """Leave the registration of a process that has ended, with a Garden in the cluster."""
    site = OperatorSite(runtime)
    async with site.serving():
        await runtime.create(MINIMAL)
        mutating, validating = [
            await runtime.get(gvk, Key("", "gardener-operator")) for gvk in (MUTATING, VALIDATING)
        ]
    for configuration in (mutating, validating):
        unserved = {**configuration, "metadata": {"name": "gardener-operator"}}
        await runtime.create(unserved)
    try:
        await until_refused(runtime)
        yield
    finally:
        await site.unregister()


async def test_status_and_labelled_objects_can_be_written_while_no_webhook_answers(
    runtime: Client,
) -> None:
    async with unanswered(runtime):
        stored = await runtime.patch(
            GARDEN, KEY, {"status": {"observedGeneration": 1}}, subresource="status"
        )
        assert stored["status"] == {"observedGeneration": 1}

        with pytest.raises(ApiError, match="failed calling webhook"):
            await runtime.patch(GARDEN, KEY, break_glass("false"))
        await runtime.patch(GARDEN, KEY, break_glass("true"))
        held = {"metadata": {"finalizers": ["example.org/any"]}}
        await runtime.patch(GARDEN, KEY, held)
        await runtime.delete(GARDEN, KEY)
        with pytest.raises(ApiError, match="failed calling webhook"):
            await runtime.patch(GARDEN, KEY, break_glass(None))
        await runtime.patch(GARDEN, KEY, {"metadata": {"finalizers": None}})

        await runtime.create(apply_merge_patch(MINIMAL, break_glass("true")))


async def test_config_maps_can_be_updated_while_no_webhook_answers_except_for_their_policies(
    runtime: Client,
) -> None:
    key = Key("garden", "emergency")
    async with unanswered(runtime):
        await runtime.create(config_map(key.name, POLICY))
        await until_policy_is_refused(runtime, key)
        await runtime.patch(CONFIG_MAP, key, {"data": {"other": "any"}})
        await runtime.patch(CONFIG_MAP, key, {**break_glass("true"), "data": {"policy": "any"}})
        await runtime.delete(CONFIG_MAP, key)


async def until_policy_is_refused(client: Client, key: Key) -> None:
    """Wait until the API server sends policies to the webhook, which does not answer."""
    for number in count():
        try:
            await change_policy(client, key.name, f"another-{number}")
        except ApiError:
            return


def break_glass(value: str | None) -> JsonObject:
    return {"metadata": {"labels": {marks.BREAK_GLASS: value}}}


async def test_the_namespace_cannot_be_deleted_while_a_garden_exists(site: OperatorSite) -> None:
    await site.client.create(MINIMAL)
    other: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": "other-"},
    }
    created = await site.client.create(other)

    with pytest.raises(Forbidden, match="is forbidden while a Garden resource exists"):
        await site.client.delete(NAMESPACE, Key("", "garden"))

    await site.client.delete(NAMESPACE, Key.of(created))


async def test_the_policy_of_a_garden_has_to_exist_and_to_be_valid(site: OperatorSite) -> None:
    audited = with_values(MINIMAL, {f"{SERVER}.{REFERENCE}": {"name": "audit"}})
    with pytest.raises(Invalid, match="ConfigMap garden/audit does not exist") as raised:
        await site.client.create(audited)
    assert raised.value.causes[0]["field"] == f"{SERVER}.{REFERENCE}.name"
    for name in ("audit", "other"):
        await site.client.apply(config_map(name, POLICY), manager="test", force=True)

    await site.client.create(audited)

    with pytest.raises(Invalid, match="rules must be a list"):
        await change_policy(site.client, "audit", POLICY.replace("- level: Metadata", "  a: b"))
    await change_policy(site.client, "other", "nonsense")


async def test_a_required_extension_cannot_be_deleted(site: OperatorSite) -> None:
    await site.client.create(extension("tools"))
    key = Key("", "tools")
    await set_required(site.client, key, "True")
    with pytest.raises(Forbidden, match=symptom("An Extension is not deleted")) as seen:
        await site.client.delete(EXTENSION, key)
    assert '"By the garden."' in str(seen.value)
    await set_required(site.client, key, "False")

    assert await site.client.delete(EXTENSION, key)


async def test_an_extension_is_defaulted_and_validated_on_creation(
    site: OperatorSite,
) -> None:
    stored = await site.client.create(extension("tools"))
    broken = with_values(extension("broken"), {"spec.deployment": ...})

    with pytest.raises(Invalid) as raised:
        await site.client.create(broken)

    assert stored["spec"]["resources"][0]["primary"] is True
    assert [cause["field"] for cause in raised.value.causes] == ["spec.deployment"]


async def request(client: Client, operation: str) -> JsonObject:
    annotations = {"gardener.cloud/operation": operation}
    return await client.patch(GARDEN, KEY, {"metadata": {"annotations": annotations}})


async def until_refused(client: Client) -> None:
    """Wait until the API server calls the webhooks, which do not answer."""
    while True:
        try:
            await request(client, "reconcile")
        except ApiError:
            return


async def change_policy(client: Client, name: str, policy: str) -> JsonObject:
    return await client.patch(CONFIG_MAP, Key("garden", name), {"data": {"policy": policy}})


async def set_required(client: Client, key: Key, status: str) -> None:
    condition = {
        "type": "RequiredRuntime",
        "status": status,
        "reason": "ExtensionRequired",
        "message": "By the garden.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    await client.patch(
        EXTENSION, key, {"status": {"conditions": [condition]}}, subresource="status"
    )


def config_map(name: str, policy: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "garden"},
        "data": {"policy": policy},
    }


def extension(type_: str) -> JsonObject:
    repository = {"ref": "registry.example.org/chart:v1"}
    return {
        "apiVersion": EXTENSION.api_version,
        "kind": "Extension",
        "metadata": {"name": type_},
        "spec": {
            "resources": [{"kind": "Extension", "type": type_, "clusterCompatibility": ["garden"]}],
            "deployment": {"extension": {"helm": {"ociRepository": repository}}},
        },
    }
