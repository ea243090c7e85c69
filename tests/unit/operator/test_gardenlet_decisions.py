"""Decisions about Gardenlets and values for their charts, from objects alone (spec 21 §14)."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject, Key, labels_of, map_at
from pergola.charts import Chart
from pergola.health.conditions import NOTHING
from pergola.operator.gardenlet.bootstrap import (
    BootstrapToken,
    token_id,
    token_in,
    token_secret,
)
from pergola.operator.gardenlet.chart_updates import has_version, is_due
from pergola.operator.gardenlet.connection import GardenAddress, address_for
from pergola.operator.gardenlet.decide import Step, must_renew, step_for
from pergola.operator.gardenlet.deploy import check_object
from pergola.operator.gardenlet.errors import GardenletFailed
from pergola.operator.gardenlet.names import TARGET
from pergola.operator.gardenlet.target import Target, check_unchanged, config_of, seed_in
from pergola.operator.gardenlet.triggers import Facts, Seen, facts_changed
from pergola.operator.gardenlet.values import (
    COMPONENTS,
    Inherited,
    Situation,
    kubeconfig_key,
    render_config,
    render_values,
)
from pergola.operator.template import images
from pergola.runtime.caching.cache import Change
from tests.support.gardenlets import gardenlet, seed

NOW: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)
ADDRESS: Final = GardenAddress("https://api.example.com", b"authority")
OPERATOR: Final = Inherited("v1", "registry.example/gardenlet:v1", "registry.example/chart:v1")
FOUND: Final = Situation(ADDRESS.server, bootstrap="kubeconfig", backup="", is_runtime=False)
ONE: Final = Key("garden", "one")


def annotated(operation: str, **spec: Any) -> JsonObject:
    obj = gardenlet("one", "chart", **spec)
    obj["metadata"]["annotations"] = {"gardener.cloud/operation": operation}
    return obj


def with_condition(obj: JsonObject, status: str) -> JsonObject:
    condition = {"type": "SeedRegistered", "status": status}
    return {**obj, "status": {"conditions": [condition]}}


# Steps


def test_a_gardenlet_without_a_seed_is_deployed() -> None:
    assert step_for(gardenlet("one", "chart"), None) == Step.DEPLOY


def test_a_gardenlet_with_a_seed_is_released_once() -> None:
    fresh = gardenlet("one", "chart")
    assert step_for(fresh, seed("one")) == Step.HAND_OVER
    assert step_for(with_condition(fresh, "Progressing"), seed("one")) == Step.HAND_OVER
    assert step_for(with_condition(fresh, "True"), seed("one")) == Step.LEAVE


def test_a_new_reference_to_a_kubeconfig_is_removed_again() -> None:
    obj = gardenlet("one", "chart", kubeconfigSecretRef={"name": "access"})
    assert step_for(with_condition(obj, "True"), seed("one")) == Step.HAND_OVER


@pytest.mark.parametrize("operation", ["reconcile", "renew-kubeconfig", ""])
def test_only_a_forced_deployment_ignores_the_seed(operation: str) -> None:
    registered = with_condition(annotated(operation), "True")
    assert step_for(registered, seed("one")) == Step.LEAVE
    forced = with_condition(annotated("force-redeploy"), "True")
    assert step_for(forced, seed("one")) == Step.DEPLOY


def test_gardenlets_of_self_hosted_shoots_are_ignored() -> None:
    assert step_for(gardenlet("self-hosted-shoot-one", "chart"), None) == Step.LEAVE


def test_a_gardenlet_in_deletion_is_ignored() -> None:
    obj = annotated("force-redeploy")
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert step_for(obj, None) == Step.LEAVE


# The target


def test_a_changed_target_is_refused_with_both_names() -> None:
    obj = gardenlet("one", "chart")
    target = Target(None, "uid-2", "the runtime cluster", is_runtime=True)  # type: ignore[arg-type]
    check_unchanged(obj, target)
    obj["metadata"]["annotations"] = {TARGET: "uid-2"}
    check_unchanged(obj, target)
    obj["metadata"]["annotations"] = {TARGET: "uid-1"}
    with pytest.raises(GardenletFailed) as refused:
        check_unchanged(obj, target)
    assert str(refused.value) == (
        "Gardenlet garden/one was deployed into the cluster uid-1, but now leads to the runtime "
        "cluster (uid-2): let spec.kubeconfigSecretRef name a Secret with a kubeconfig of the "
        "former or, to move the Seed, remove the annotation "
        "operator.gardener.cloud/gardenlet-target"
    )


@pytest.mark.parametrize(
    ("before", "after", "triggers"),
    [
        ("", "uid-1", False),
        ("uid-1", "", True),
        ("uid-1", "uid-2", True),
        ("uid-1", "uid-1", False),
    ],
)
def test_a_target_triggers_unless_the_operator_records_the_first_one(
    before: str, after: str, triggers: bool
) -> None:
    def seen(target: str) -> Seen:
        obj = gardenlet("one", "chart")
        obj["metadata"]["annotations"] = {TARGET: target} if target else {}
        return Seen(Facts.of(obj), NOTHING)

    change = Change(Key("garden", "one"), seen(before), seen(after))
    assert facts_changed(change) is triggers


def test_the_seed_of_a_gardenlet_is_in_the_configuration_that_its_deployment_mounts() -> None:
    volumes = [{"name": "other"}, {"name": "gardenlet-config", "configMap": {"name": "config-1"}}]
    assert config_of({"spec": {"template": {"spec": {"volumes": volumes}}}}) == "config-1"
    assert config_of({}) == ""
    text = "seedConfig: {metadata: {name: one}}"
    assert seed_in({"data": {"config.yaml": text}}) == "one"
    assert seed_in({"data": {"config.yaml": "- no map"}}) == ""
    assert seed_in({"data": {"config.yaml": "{"}}) == ""


# The address of the virtual cluster


def test_a_gardenlet_uses_the_address_of_the_garden_unless_it_names_another() -> None:
    assert address_for(gardenlet("one", "chart"), ADDRESS) == ADDRESS
    own = {"gardenClusterAddress": "https://other", "gardenClusterCACert": "b3RoZXI="}
    obj = gardenlet("one", "chart", config={"gardenClientConnection": own})
    assert address_for(obj, ADDRESS) == GardenAddress("https://other", b"other")


def test_an_authority_that_is_not_base64_is_reported() -> None:
    own = {"gardenClusterCACert": "no base64"}
    obj = gardenlet("one", "chart", config={"gardenClientConnection": own})
    with pytest.raises(GardenletFailed, match=r"CACert of Gardenlet garden/one is not"):
        address_for(obj, ADDRESS)


# The bootstrap token


def test_the_token_of_a_gardenlet_has_the_description_of_the_original() -> None:
    token = BootstrapToken(token_id(ONE), "0123456789abcdef")
    secret = token_secret(token, ONE, NOW)
    data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert secret["metadata"]["name"] == f"bootstrap-token-{token.id}"
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert data == {
        "description": (
            "A bootstrap token for the Gardenlet for "
            "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/one."
        ),
        "token-id": token.id,
        "token-secret": "0123456789abcdef",
        "expiration": "2026-01-03T12:00:00Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
    }


@pytest.mark.parametrize(("hours", "is_used"), [(0, True), (22.9, True), (23, False), (30, False)])
def test_a_token_is_used_until_an_hour_before_its_end(hours: float, is_used: bool) -> None:
    token = BootstrapToken(token_id(ONE), "0123456789abcdef")
    secret = token_secret(token, ONE, NOW)
    assert token_in(secret, NOW + timedelta(hours=hours)) == (token if is_used else None)


def test_a_malformed_token_is_not_used() -> None:
    assert token_in({}, NOW) is None
    secret = token_secret(BootstrapToken("abcdef", "short"), ONE, NOW)
    assert token_in(secret, NOW) is None
    secret["data"]["expiration"] = "%"
    assert token_in(secret, NOW) is None


def test_tokens_are_different_for_each_gardenlet_and_always_the_same() -> None:
    assert token_id(ONE) == token_id(Key("garden", "one"))
    assert token_id(ONE) != token_id(Key("garden", "two"))
    assert len(token_id(ONE)) == 6


def test_a_kubeconfig_is_renewed_after_its_certificate_expires_or_on_request() -> None:
    known = seed("one")
    assert not must_renew(gardenlet("one", "chart"), None, NOW)
    assert not must_renew(gardenlet("one", "chart"), known, NOW)
    known["status"] = {"clientCertificateExpirationTimestamp": "2026-01-02T12:00:01Z"}
    assert not must_renew(gardenlet("one", "chart"), known, NOW)
    known["status"] = {"clientCertificateExpirationTimestamp": "2026-01-02T11:59:59Z"}
    assert must_renew(gardenlet("one", "chart"), known, NOW)
    assert must_renew(annotated("renew-kubeconfig"), None, NOW)


# The values


def test_chart_values_combine_the_gardenlet_and_the_operator() -> None:
    deployment = {"replicaCount": 1, "env": [{"name": "A", "value": "b"}]}
    config = {"logLevel": "debug", "seedConfig": {"spec": {"provider": {"type": "aws"}}}}
    obj = gardenlet("one", "chart", config=config, deployment=deployment)
    values = render_values(obj, OPERATOR, FOUND)
    assert values == {
        **deployment,
        "image": {"repository": "registry.example/gardenlet", "tag": "v1"},
        "config": render_config(obj, FOUND),
    }
    rendered = values["config"]
    assert rendered["logLevel"] == "debug"
    assert rendered["seedConfig"] == {
        "metadata": {"name": "one"},
        "spec": {"provider": {"type": "aws"}},
    }
    assert rendered["leaderElection"] == {"resourceNamespace": "garden"}
    assert rendered["gardenClientConnection"] == {
        "gardenClusterAddress": "https://api.example.com",
        "kubeconfigSecret": {"name": "gardenlet-kubeconfig", "namespace": "garden"},
        "bootstrapKubeconfig": {
            "name": "gardenlet-kubeconfig-bootstrap",
            "namespace": "garden",
            "kubeconfig": "kubeconfig",
        },
    }


def test_a_gardenlet_with_its_own_kubeconfig_gets_no_bootstrap() -> None:
    connection = {"bootstrapKubeconfig": {"name": "a", "namespace": "b"}}
    obj = gardenlet("one", "chart", config={"gardenClientConnection": connection})
    rendered = render_config(obj, FOUND._replace(bootstrap=""))
    assert "bootstrapKubeconfig" not in rendered["gardenClientConnection"]
    # Otherwise, the path set by the user is used.
    place = render_config(obj, FOUND)["gardenClientConnection"]["bootstrapKubeconfig"]
    assert place == {"name": "a", "namespace": "b", "kubeconfig": "kubeconfig"}
    assert "kubeconfig" not in connection["bootstrapKubeconfig"]


def test_the_path_of_the_kubeconfig_can_be_changed() -> None:
    assert kubeconfig_key(gardenlet("one", "chart")) == Key("garden", "gardenlet-kubeconfig")
    connection = {"kubeconfigSecret": {"name": "mine", "namespace": "there"}}
    obj = gardenlet("one", "chart", config={"gardenClientConnection": connection})
    assert kubeconfig_key(obj) == Key("there", "mine")


def test_empty_and_partial_fields_of_a_connection_have_defaults() -> None:
    connection = {
        "gardenClusterAddress": "",
        "kubeconfigSecret": {"name": "mine"},
        "bootstrapKubeconfig": "malformed",
    }
    obj = gardenlet("one", "chart", config={"gardenClientConnection": connection})
    assert render_config(obj, FOUND)["gardenClientConnection"] == {
        "gardenClusterAddress": ADDRESS.server,
        "kubeconfigSecret": {"name": "mine", "namespace": "garden"},
        "bootstrapKubeconfig": {
            "name": "gardenlet-kubeconfig-bootstrap",
            "namespace": "garden",
            "kubeconfig": "kubeconfig",
        },
    }


def test_an_image_of_the_gardenlet_overrides_that_of_the_operator_field_by_field() -> None:
    obj = gardenlet("one", "chart", deployment={"image": {"tag": "v2"}})
    image = render_values(obj, OPERATOR, FOUND)["image"]
    assert image == {"repository": "registry.example/gardenlet", "tag": "v2"}
    pinned = OPERATOR._replace(image="registry.example:5000/gardenlet:v1@sha256:ab")
    image = render_values(gardenlet("one", "chart"), pinned, FOUND)["image"]
    assert image == {"repository": "registry.example:5000/gardenlet", "tag": "sha256:ab"}


def test_image_vectors_of_the_gardenlet_precede_those_of_the_operator() -> None:
    operator = OPERATOR._replace(images="a", component_images="b")
    values = render_values(gardenlet("one", "chart"), operator, FOUND)
    assert values["imageVectorOverwrite"] == "a"
    assert values["componentImageVectorOverwrites"] == "b"
    own = {"imageVectorOverwrite": "c", "componentImageVectorOverwrite": "d"}
    values = render_values(gardenlet("one", "chart", deployment=own), operator, FOUND)
    assert values["imageVectorOverwrite"] == "c"
    assert values["componentImageVectorOverwrites"] == "d"
    assert "componentImageVectorOverwrite" not in values


def test_in_the_runtime_cluster_pods_may_connect_to_the_virtual_api_server() -> None:
    obj = gardenlet("one", "chart", deployment={"podLabels": {"a": "b"}})
    there = render_values(obj, OPERATOR, FOUND._replace(is_runtime=True))
    label = "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"
    assert there["podLabels"] == {label: "allowed", "a": "b"}
    assert render_values(obj, OPERATOR, FOUND)["podLabels"] == {"a": "b"}


def test_pods_start_again_when_the_credentials_for_backups_change() -> None:
    values = render_values(gardenlet("one", "chart"), OPERATOR, FOUND._replace(backup="b-12"))
    assert values["podAnnotations"] == {"checksum/seed-backup-secret": "b-12"}


def test_rendering_does_not_modify_the_gardenlet() -> None:
    obj = gardenlet("one", "chart", config={"gardenClientConnection": {"qps": 1}})
    before = str(obj)
    render_values(obj, OPERATOR, FOUND)
    assert str(obj) == before


def test_the_image_and_the_chart_have_the_version_of_the_operator(tmp_path: Any) -> None:
    overwrite = tmp_path / "components.yaml"
    overwrite.write_text("components: []")
    found = Inherited.of(images({}), "v1.150.0", {COMPONENTS: str(overwrite)})
    releases = "europe-docker.pkg.dev/gardener-project/releases"
    assert found.image == f"{releases}/gardener/gardenlet:v1.150.0"
    assert found.chart == f"{releases}/charts/gardener/gardenlet:v1.150.0"
    assert found.images == ""
    assert found.component_images == "components: []"


# The chart


@pytest.mark.parametrize("lacks", ["apiVersion", "kind", "metadata"])
def test_an_object_that_cannot_be_applied_is_an_error_of_the_chart(lacks: str) -> None:
    chart = Chart("registry.example/gardenlet:1", "gardenlet", "1.0.0", b"", "sha256:ab")
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    check_object(obj, chart)
    del obj[lacks]
    with pytest.raises(GardenletFailed, match=r"chart registry\.example/gardenlet:1 has no"):
        check_object(obj, chart)


# New charts


def test_only_labelled_gardenlets_get_another_chart() -> None:
    obj = gardenlet("one", "chart:v0")
    assert not is_due(obj, "chart:v1")
    labels = {"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "true"}
    obj["metadata"]["labels"] = labels
    assert labels_of(obj) == labels
    assert is_due(obj, "chart:v1")
    assert not is_due(obj, "chart:v0")
    map_at(obj, "spec", "deployment", "helm", "ociRepository")["pullSecretRef"] = {"name": "x"}
    assert not is_due(obj, "chart:v0")  # what a user adds to the right chart stays


@pytest.mark.parametrize(
    ("state", "version", "is_so"),
    [("Succeeded", "v1", True), ("Processing", "v1", False), ("Succeeded", "v0", False)],
)
def test_charts_are_updated_once_the_garden_is_reconciled_by_the_same_version(
    state: str, version: str, is_so: bool
) -> None:
    operation = {"type": "Reconcile", "state": state, "progress": 100}
    garden: JsonObject = {
        "metadata": {"name": "one"},
        "status": {"lastOperation": operation, "gardener": {"version": version}},
    }
    assert has_version(garden, "v1") is is_so
