"""Admission of manifests without a cluster: the rules of the webhooks, all at once."""

from datetime import UTC, datetime
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.operator.webhooks.offline import Checked, Stored, check_manifests
from tests.support.gardens import MINIMAL, SERVER, VIRTUAL, with_values

NOW = datetime(2026, 6, 1, tzinfo=UTC)
EXTENSION: JsonObject = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Extension",
    "metadata": {"name": "certificates"},
    "spec": {
        "resources": [
            {"kind": "Extension", "type": "certificates", "clusterCompatibility": ["garden"]}
        ],
        "deployment": {"extension": {"helm": {"ociRepository": {"ref": "example.org/chart:v1"}}}},
    },
}
POLICY = f"{SERVER}.auditConfig.auditPolicy.configMapRef.name"
CONFIG_MAP: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "policy", "namespace": "garden"},
    "data": {"policy": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: 1\n"},
}
ALONE: Final = Stored()
ONE_TYPE: JsonObject = {"spec.extensions": [{"type": "certificates"}]}


def checked(*objects: JsonObject, stored: Stored = ALONE) -> list[Checked]:
    return list(check_manifests(objects, stored, NOW))


def fields(found: Checked) -> list[str]:
    return [cause.field for cause in found.causes]


def test_the_defaults_are_set_before_the_rules_are_checked() -> None:
    (found,) = checked(with_values(MINIMAL, {f"{VIRTUAL}.dns.domains": ["garden.example.org"]}))

    assert found.causes == ()
    assert found.obj["spec"]["virtualCluster"]["dns"]["domains"] == [{"name": "garden.example.org"}]


def test_all_schema_findings_are_reported_together() -> None:
    broken = {f"{VIRTUAL}.kubernetes": 1, "spec.runtimeCluster.provider": "a"}

    (found,) = checked(with_values(MINIMAL, broken))

    assert fields(found) == ["spec.runtimeCluster.provider", f"{VIRTUAL}.kubernetes"]


def test_all_rule_findings_are_reported_together() -> None:
    broken: dict[str, Any] = {
        f"{VIRTUAL}.kubernetes.version": "1.1.0",
        f"{VIRTUAL}.dns.domains": [{"name": "A_"}],
    }

    (found,) = checked(with_values(MINIMAL, broken))

    assert f"{VIRTUAL}.kubernetes.version" in fields(found)
    assert f"{VIRTUAL}.dns.domains[0].name" in fields(found)


def test_a_misspelt_field_is_a_warning() -> None:
    (found,) = checked(with_values(MINIMAL, {f"{VIRTUAL}.kubernetes.Version": "1"}))

    assert found.causes == ()
    assert any(
        warning.startswith(f"{VIRTUAL}.kubernetes.Version: is not a known field")
        for warning in found.warnings
    )


def test_a_change_is_checked_against_the_stored_garden() -> None:
    changed = with_values(MINIMAL, {f"{VIRTUAL}.gardener.clusterIdentity": "other"})

    (found,) = checked(changed, stored=Stored([MINIMAL]))

    assert fields(found) == [f"{VIRTUAL}.gardener.clusterIdentity"]


def test_a_malformed_stored_garden_can_be_repaired_offline() -> None:
    reconciled = with_values(MINIMAL, {"metadata.finalizers": ["gardener.cloud/operator"]})
    unreadable = with_values(reconciled, {f"{VIRTUAL}.kubernetes": 1})

    (found,) = checked(reconciled, stored=Stored([unreadable]))

    assert found.causes == ()


def test_a_second_garden_is_refused() -> None:
    second = with_values(MINIMAL, {"metadata.name": "second"})

    (found,) = checked(second, stored=Stored([MINIMAL], is_complete=True))

    (cause,) = found.causes
    assert "there can be only one" in cause.message


def test_extensions_in_the_same_file_serve_types() -> None:
    without, _ = checked(with_values(MINIMAL, ONE_TYPE), EXTENSION)
    other = with_values(EXTENSION, {"spec.resources": [{"kind": "Extension", "type": "other"}]})
    refused, _ = checked(with_values(MINIMAL, ONE_TYPE), other)

    assert fields(without) == []
    assert fields(refused) == ["spec.extensions[0].type"]


def test_missing_references_are_warnings_offline_and_findings_in_a_cluster() -> None:
    unknown = with_values(MINIMAL, {**ONE_TYPE, POLICY: "policy"})

    (offline,) = checked(unknown)
    (live,) = checked(unknown, stored=Stored(is_complete=True))

    assert offline.causes == ()
    assert [warning.partition(":")[0] for warning in offline.warnings[-2:]] == [
        "spec.extensions",
        POLICY,
    ]
    assert fields(live) == ["spec.extensions[0].type", POLICY]


def test_an_audit_policy_of_the_same_file_is_checked_with_its_garden() -> None:
    found, policy = checked(with_values(MINIMAL, {POLICY: "policy"}), CONFIG_MAP)

    assert fields(found) == [POLICY]
    assert fields(policy) == ["data.policy"]


def test_an_unreferenced_config_map_is_not_validated() -> None:
    assert checked(CONFIG_MAP) == []


def test_an_extension_is_defaulted_and_checked() -> None:
    (valid,) = checked(EXTENSION)
    (broken,) = checked(with_values(EXTENSION, {"spec.deployment": {}}))
    (malformed,) = checked(with_values(EXTENSION, {"spec.resources": [1]}))

    assert valid.causes == ()
    assert fields(broken) == ["spec.deployment"]
    assert fields(malformed) == ["spec.resources[0]"]


def test_a_change_gets_the_status_of_the_stored_garden() -> None:
    (found,) = checked({**MINIMAL, "status": {"gardener": 1}}, stored=Stored([MINIMAL]))

    assert found.causes == ()
    assert "status" not in found.obj
