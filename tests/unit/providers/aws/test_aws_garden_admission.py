"""Admission of the garden's objects on AWS (spec 31 §8); verdicts are compared in `conformance`."""

import base64
import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.documents import client_of
from conformance.questions import collected
from conformance.subjects.aws_garden import verdict_of
from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.extensions.garden import Garden
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.providers.aws.admission.webhooks import COMPONENT, admission_webhooks
from pergola.runtime.metrics import Metrics

DATA = Path(__file__).parent / "data"
QUESTIONS = [*collected("aws-garden-objects")]
BUCKET: JsonObject = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "BackupBucketConfig",
    "immutability": {
        "retentionType": "bucket",
        "retentionPeriod": "48h",
        "mode": "compliance",
    },
}


def served(*others: JsonObject) -> dict[str, Any]:
    """Return the handlers by the first parts of the webhooks' names."""
    found = admission_webhooks(Garden(client_of(others)))
    return {each.short_name: each.handler for each in found}


def asked(obj: JsonObject, *others: JsonObject, old: JsonObject | None = None) -> Verdict:
    question = {"object": obj, "others": list(others), **({"old": old} if old else {})}
    return verdict_of(question, "validator")


def secret(**data: str | bytes) -> JsonObject:
    encoded = {
        key: base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()
        for key, text in data.items()
    }
    metadata = {"name": "cloud", "namespace": "garden-demo"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def binding(kind: str = "Secret", **reference: Any) -> JsonObject:
    found = {"apiVersion": "v1", "kind": kind, "name": "cloud", "namespace": "garden-demo"}
    return {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "CredentialsBinding",
        "metadata": {"name": "b", "namespace": "garden-demo"},
        "provider": {"type": "aws"},
        "credentialsRef": {**found, **reference},
    }


def seed(provider: str = "aws", config: JsonObject | None = BUCKET) -> JsonObject:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "b", "namespace": "garden"}
    backup = {"provider": provider, "credentialsRef": reference}
    if config is not None:
        backup["providerConfig"] = config
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        "metadata": {"name": "seed"},
        "spec": {"provider": {"type": "aws"}, "backup": backup},
    }


def own_profile() -> JsonObject:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "NamespacedCloudProfile",
        "metadata": {"name": "own", "namespace": "garden-demo"},
        "spec": {"parent": {"kind": "CloudProfile", "name": "aws"}},
    }


def cloud_profile() -> JsonObject:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "CloudProfile",
        "metadata": {"name": "aws"},
        "spec": {"type": "aws"},
    }


async def test_the_webhooks_are_registered_as_the_original_registers_them() -> None:
    originals = orjson.loads((DATA / "admission_webhooks.json").read_bytes())
    garden = Garden(client_of([]))
    settings = WebhookSettings(namespace="garden")
    webhooks = ExtensionWebhooks(
        garden.client, COMPONENT, admission_webhooks(garden), settings, Metrics()
    )

    ours = {
        obj["kind"].removesuffix("WebhookConfiguration").lower(): obj
        for obj in webhooks.configurations(b"")
    }

    assert ours.keys() == originals.keys()
    for kind, original in originals.items():
        assert ours[kind]["metadata"]["name"] == original["metadata"]["name"]
        assert ours[kind]["metadata"]["labels"] == original["metadata"]["labels"]
        assert by_name(ours[kind]) == by_name(original)


def by_name(configuration: JsonObject) -> dict[str, JsonObject]:
    """Return the entries of a configuration with the API server's defaults."""
    found = {}
    for entry in configuration["webhooks"]:
        client_config = dict(entry["clientConfig"])
        client_config.pop("caBundle", None)
        rules = [{"scope": "*", **rule} for rule in entry["rules"]]
        found[entry["name"]] = {
            "namespaceSelector": {},
            "reinvocationPolicy": "Never",
            **entry,
            "clientConfig": client_config,
            "rules": sorted(rules, key=str),
        }
    return found


def test_no_finding_contains_a_value_of_a_secret() -> None:
    hidden = 0
    for question in QUESTIONS:
        objects = [question["object"], *question.get("others", ())]
        values = [
            base64.b64decode(value)
            for obj in objects
            if "Secret" in obj["kind"]
            for value in map_at(obj, "data").values()
        ]
        verdict = verdict_of(question, "validator")
        text = f"{verdict.message} {verdict.causes} {verdict.because} {verdict.warnings}".encode()
        for value in values:
            if len(value) > 5 and not verdict.allowed:
                hidden += 1
                assert value not in text
                assert base64.b64encode(value) not in text
    assert hidden > 50


def test_a_key_in_the_place_of_the_region_is_not_shown_either() -> None:
    verdict = asked(secret(accessKeyID="A" * 20, secretAccessKey="b" * 40, region="c" * 40))

    assert "c" * 40 not in str(verdict)
    assert {cause.field for cause in verdict.causes} == {"secret.data[region]"}


def test_a_refusal_is_one_sentence_for_each_finding() -> None:
    verdict = asked(binding(), secret(accessKeyID="A" * 20, secretAccessKey="b" * 39))

    assert verdict.message == (
        'CredentialsBinding.security.gardener.cloud "b" is invalid: secret.data[secretAccessKey]: '
        "Invalid value: (hidden): must have 40 characters, not 39 (in Secret garden-demo/cloud)"
    )


def test_a_binding_to_nothing_is_refused() -> None:
    assert asked(binding()).message == (
        'CredentialsBinding.security.gardener.cloud "b" is invalid: credentialsRef: Not found: '
        "Secret garden-demo/cloud does not exist: create it first"
    )


@pytest.mark.parametrize("name", [None, "", "../other", "a/b", "a%2fb", 5, "n" * 5000])
def test_a_binding_to_an_impossible_name_reads_nothing(name: Any) -> None:
    verdict = asked(binding(name=name))

    assert [cause.field for cause in verdict.causes] == ["credentialsRef.name"]


def test_a_config_map_holds_no_credentials() -> None:
    [cause] = asked(binding("ConfigMap")).causes

    assert (cause.reason, cause.field) == ("FieldValueNotSupported", "credentialsRef")


def test_the_backup_of_a_seed_on_another_cloud_is_left_to_its_extension() -> None:
    foreign = {"apiVersion": "gcp.provider.extensions.gardener.cloud/v1alpha1", "kind": "X"}

    assert asked(seed("gcp", foreign)).allowed
    assert asked(seed("gcp", foreign), old=seed()).allowed
    assert asked(seed("gcp", foreign), old=seed(config={})).allowed
    assert asked(seed(), old=seed("gcp", foreign)).allowed
    assert not asked(seed("aws", foreign)).allowed


@pytest.mark.parametrize(("field", "value"), [("mode", "governance"), ("retentionPeriod", "24h")])
def test_compliance_is_never_weakened(field: str, value: str) -> None:
    config = copy.deepcopy(BUCKET)
    config["immutability"][field] = value

    [cause] = asked(seed(config=config), old=seed()).causes

    assert cause.reason == "FieldValueForbidden"
    assert cause.field == f"spec.backup.providerConfig.immutability.{field}"
    assert asked(seed(config=None), old=seed()).allowed


@pytest.mark.parametrize("obj", [seed(config={}), cloud_profile(), binding(), own_profile()])
def test_an_object_that_is_being_deleted_is_not_validated(obj: JsonObject) -> None:
    obj = {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert asked(obj).allowed


def test_credentials_are_checked_again_only_if_they_change() -> None:
    wrong = secret(accessKeyID="a")

    assert not asked(wrong).allowed
    assert asked(wrong, old=wrong).allowed
    assert not asked(wrong, old=secret(accessKeyID="b")).allowed


async def test_a_cloud_profile_that_the_cache_lacks_is_read() -> None:
    read: list[Key] = []

    class Reading:
        async def find(self, _: GroupVersionKind, key: Key) -> JsonObject:
            read.append(key)
            return cloud_profile()

    garden = Garden(Reading())  # type: ignore[arg-type] # all that is read
    [validator] = [each for each in admission_webhooks(garden) if each.short_name == "validator"]
    obj = own_profile()
    request = Request(
        uid="1",
        operation="CREATE",
        kind=GroupVersionKind.of(obj),
        resource=GroupVersionResource("core.gardener.cloud", "v1beta1", "namespacedcloudprofiles"),
        name="own",
        object=obj,
    )

    verdict = validator.handler(request)

    assert not isinstance(verdict, Verdict)
    assert (await verdict).allowed
    assert read == [Key("", "aws")]


def test_merged_images_are_sorted_and_merging_them_again_changes_nothing() -> None:
    def image(name: str, *versions: str) -> JsonObject:
        regions = [{"name": "eu-west-1", "ami": f"ami-{name}"}]
        return {"name": name, "versions": [{"version": v, "regions": regions} for v in versions]}

    def config(*images: JsonObject) -> JsonObject:
        gvk = {"apiVersion": BUCKET["apiVersion"], "kind": "CloudProfileConfig"}
        return {**gvk, "machineImages": list(images)}

    profile = own_profile()
    profile["spec"]["providerConfig"] = config(image("z", "2", "1"), image("b", "3"))
    stored = config(image("c", "1"), image("b", "1", "2"))
    profile["status"] = {"cloudProfileSpec": {"providerConfig": stored}}

    [edit] = verdict_of({"object": profile}, "mutator").edits

    merged: Any = edit.value
    found = {
        each["name"]: [version["version"] for version in each["versions"]]
        for each in merged["machineImages"]
    }
    assert list(found.items()) == [("b", ["1", "2", "3"]), ("c", ["1"]), ("z", ["1", "2"])]
    profile["status"]["cloudProfileSpec"]["providerConfig"] = merged
    assert verdict_of({"object": profile}, "mutator").edits == ()


@pytest.mark.parametrize("kind", sorted({each["object"]["kind"] for each in QUESTIONS}))
def test_every_kind_is_reviewed(kind: str) -> None:
    verdicts = [
        verdict_of(question, "validator")
        for question in QUESTIONS
        if question["object"]["kind"] == kind
    ]

    assert {verdict.allowed for verdict in verdicts} == {True, False}
    assert all(len(verdict.message) < 5000 for verdict in verdicts)


def test_findings_about_a_profile_name_the_place_of_each_mistake() -> None:
    profile = cloud_profile()
    images = {"machineImages": [{"name": "", "versions": [{"version": "1"}], "x": 1}]}
    gvk = {"apiVersion": BUCKET["apiVersion"], "kind": "CloudProfileConfig"}
    profile["spec"]["providerConfig"] = {**gvk, **images}

    assert [cause.field for cause in asked(profile).causes] == [
        "spec.providerConfig.machineImages[0].x"
    ]
    del maps_at(profile, "spec", "providerConfig", "machineImages")[0]["x"]
    assert [cause.field for cause in asked(profile).causes] == [
        "spec.providerConfig.machineImages[0].name",
        "spec.providerConfig.machineImages[0].versions[0].regions",
    ]
