"""Changes by the webhooks of AWS control planes, and objects they leave alone (spec 31 §8)."""

import base64
from contextlib import suppress
from copy import deepcopy
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conformance.strategies.aws_control_planes import KEYS
from conformance.strategies.aws_webhooks import (
    case_of,
    nodes,
    secret,
    service,
    some_object,
    table,
)
from conformance.strategies.fields import Change, changed
from conformance.subjects.aws_webhooks import answer_to, webhooks_for
from pergola.api.objects import JsonObject, map_at
from pergola.bundle.errors import BundleError
from pergola.extensions.webhooks import mutation
from pergola.kube.yaml import parse
from pergola.providers.aws.control_plane.webhooks.etcds import EtcdStorage
from pergola.providers.aws.control_plane.webhooks.kubelet_config import adapt_config
from pergola.providers.aws.control_plane.webhooks.kubelet_unit import UnitError, adapt_unit
from pergola.resource_manager.webhooks.explanation import applied
from pergola.runtime.metrics import Metrics
from tests.support.fuzzing import Fuzzed, Sample, examples

CASES = list(table())
INFRASTRUCTURE = "cluster.spec.shoot.spec.provider.infrastructureConfig"
CHOSEN = "cluster.spec.shoot.metadata.annotations"
GATE: JsonObject = {"aws.provider.extensions.gardener.cloud/enable-volume-attributes-class": "true"}


def after(question: JsonObject) -> JsonObject:
    """Return the object as the webhook leaves it."""
    verdict = answer_to(question)
    assert verdict.allowed, verdict.message
    return applied(question["object"], verdict.edits)


def is_allowed(question: JsonObject) -> bool:
    return answer_to(question).allowed


def title(question: JsonObject) -> str:
    return f"{question['webhook']} {question['object']['metadata']['name']}"


@pytest.mark.parametrize("question", CASES, ids=title)
def test_a_webhook_changes_nothing_in_its_own_output(question: JsonObject) -> None:
    if is_allowed(question):
        again = {**question, "object": after(question)}
        assert not answer_to(again).edits


@given(question=some_object())
@settings(max_examples=examples(), suppress_health_check=[HealthCheck.too_slow])
def test_random_objects_are_changed_once(question: JsonObject) -> None:
    if is_allowed(question):
        assert not answer_to({**question, "object": after(question)}).edits
    else:
        assert "\n" not in answer_to(question).message


@pytest.mark.parametrize("question", CASES, ids=title)
def test_an_object_that_is_being_deleted_stays_as_it_is(question: JsonObject) -> None:
    gone = changed(question, [Change("object.metadata.deletionTimestamp", "2026-01-01T00:00:00Z")])

    assert after(gone) == gone["object"]


@pytest.mark.parametrize("question", CASES, ids=title)
def test_a_webhook_does_not_change_the_object_that_it_was_given(question: JsonObject) -> None:
    given = deepcopy(question)
    answer_to(given)

    assert given == question


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-scheduler", "cluster-autoscaler"])
def test_the_gate_for_volume_classes_leaves_no_trace_when_it_is_off(name: str) -> None:
    old = case_of(name, Change("cluster.spec.shoot.spec.kubernetes.version", "1.33.5"))
    chosen = changed(old, [Change(CHOSEN, GATE)])

    off, on = after(old), after(chosen)

    assert off == old["object"]
    assert "VolumeAttributesClass=true" in str(on)
    assert (after(old), after(chosen)) == (off, on)


@pytest.mark.parametrize(
    ("option", "trace"), [("enableECRAccess", "credential"), ("enableMTUCustomizer", "mtu")]
)
def test_an_option_of_nodes_leaves_no_trace_when_it_is_off(option: str, trace: str) -> None:
    off = after(nodes(Change(f"{INFRASTRUCTURE}.{option}", value=False)))
    on = after(nodes(Change(f"{INFRASTRUCTURE}.{option}", value=True)))

    assert trace in str(on).lower()
    assert trace not in str(off).lower()
    assert on == after(nodes())


def test_other_containers_are_untouched() -> None:
    foreign: list[Any] = [
        {"name": "kube-controller-manager", "command": ["/bin/it"]},
        {"name": "foreign", "command": ["--cloud-provider=aws"], "env": [{"name": "A"}]},
        {"name": "kube-controller-manager", "command": ["--cloud-config=twin"]},
    ]
    question = case_of(
        "kube-controller-manager", Change("object.spec.template.spec.containers", foreign)
    )

    containers = map_at(after(question), "spec", "template", "spec")["containers"]

    assert containers[0]["command"][1:] == [
        "--cloud-provider=external",
        "--allocate-node-cidrs=true",
    ]
    assert containers[1:] == foreign[1:]


def test_dual_stack_is_only_for_clusters_that_have_it() -> None:
    only_ipv4, both = service(["IPv4"]), service(["IPv4", "IPv6"])

    assert after(only_ipv4) == only_ipv4["object"]
    assert "dualstack" in str(after(both))


def test_an_existing_load_balancer_waits_until_its_owner_takes_the_mark_off() -> None:
    question = service(["IPv6"])
    existing = {**question, "old": question["object"]}
    marked = after(existing)

    assert marked["metadata"]["annotations"] == {
        "extensions.gardener.cloud/ignore-load-balancer": "true"
    }
    taken_off = after({**question, "old": marked})
    assert "dualstack" in str(taken_off["metadata"]["annotations"])


def test_a_service_of_an_unknown_caller_is_allowed_with_a_warning() -> None:
    question = service(["IPv6"])
    question["cluster"]["kind"] = "Other"

    verdict = answer_to(question)

    assert verdict.allowed
    assert not verdict.edits
    (warning,) = verdict.warnings
    assert warning == (
        "the load balancer may lack IPv6: the request comes from 10.0.0.1, which is the address "
        "of no API server of a Shoot"
    )


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_a_shoot_is_known_by_the_address_of_its_api_server(peer: str) -> None:
    assert answer_to(service(["IPv6"]), peer=peer).edits


@pytest.mark.parametrize("peer", ["", "10.0.0.2", "fe80::1%eth0", "x,metadata.name=y"])
def test_another_address_is_no_api_server(peer: str) -> None:
    verdict = answer_to(service(["IPv6"]), peer=peer)

    assert (verdict.allowed, verdict.edits) == (True, ())
    assert "address" in verdict.warnings[0]


def test_an_object_outside_of_a_shoot_is_refused() -> None:
    question = case_of("kube-apiserver", Change("cluster.metadata.name", "other"))

    verdict = answer_to(question)

    assert not verdict.allowed
    assert verdict.message == (
        "there is no Cluster shoot--demo--blue: the namespace belongs to no Shoot"
    )


def test_the_credentials_file_has_the_keys_and_the_region() -> None:
    data = after(secret(KEYS))["data"]

    assert base64.b64decode(data["credentialsFile"]).decode() == (
        "[default]\naws_access_key_id=AKIA0000000000000000\n"
        f"aws_secret_access_key={'0' * 40}\nregion=eu-west-1"
    )


def test_the_unit_of_the_kubelet_is_written_in_the_form_of_the_original() -> None:
    unit = "[Unit]\nA=b\n[Service]\nExecStart=/opt/bin/kubelet \\\n    --config=/x --v=2"

    assert adapt_unit(unit, ecr=True) == (
        "[Unit]\nA=b\n\n[Service]\nExecStart=/opt/bin/kubelet --config=/x \\\n    --v=2 \\\n"
        "    --cloud-provider=external \\\n"
        "    --image-credential-provider-config=/opt/gardener/ecr-credential-provider-config.json "
        "\\\n    --image-credential-provider-bin-dir=/opt/bin/\n"
        "ExecStartPre=/bin/sh -c 'hostnamectl set-hostname $(hostname -f)'\n"
    )


@given(text=st.text(alphabet="[]=\\\n#; aS", max_size=40))
@example(text="[Unit]\nA=b \\")
@example(text="[Unit]\nA=b \\\n \\ ")
@example(text="[Service]\nExecStart=/k --x \\")
@settings(max_examples=examples())
def test_a_unit_that_is_read_is_changed_once(text: str) -> None:
    with suppress(UnitError):
        adapted = adapt_unit(text, ecr=False)
        assert adapt_unit(adapted, ecr=False) == adapted


def test_one_line_is_inserted_into_the_configuration_of_the_kubelet() -> None:
    (path, text), *_ = [
        (file["path"], base64.b64decode(file["content"]["inline"]["data"]).decode())
        for file in nodes()["object"]["spec"]["files"][:1]
    ]
    assert path == "/var/lib/kubelet/config/kubelet"

    lines = adapt_config(text).splitlines()

    assert [line for line in lines if line not in text.splitlines()] == [
        "enableControllerAttachDetach: true"
    ]
    assert [line for line in lines if line in text.splitlines()] == text.splitlines()


def test_a_configuration_in_another_form_keeps_its_content() -> None:
    text = '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}'

    found = parse(adapt_config(text))

    assert isinstance(found, dict)
    assert found["enableControllerAttachDetach"] is True
    assert found["syncFrequency"] == "0s"


def test_the_capacity_of_etcd_must_be_a_quantity() -> None:
    storage = EtcdStorage.from_environment({"PERGOLA_AWS_ETCD_STORAGE_CLASS": "fast"})
    assert storage == EtcdStorage("fast", "10Gi")

    with pytest.raises(BundleError, match="PERGOLA_AWS_ETCD_STORAGE_CAPACITY is not a quantity"):
        EtcdStorage.from_environment({"PERGOLA_AWS_ETCD_STORAGE_CAPACITY": "much"})


SAMPLES = {
    name: [
        Sample(gvk_group, plural, question["object"])
        for question in CASES
        if question["webhook"] == name
        for gvk_group, plural in [
            (
                question["object"]["apiVersion"].rpartition("/")[0],
                f"{question['object']['kind'].lower()}s",
            )
        ]
    ]
    for name in sorted({question["webhook"] for question in CASES})
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
@given(data=st.data())
@settings(max_examples=examples(), suppress_health_check=[HealthCheck.too_slow])
def test_a_webhook_of_aws_responds_to_any_request(name: str, data: st.DataObject) -> None:
    webhook = webhooks_for(service(["IPv6"]))[name]
    with patch.object(mutation, "log") as log:
        Fuzzed.of([webhook], Metrics()).check(data, webhook.registration.path, SAMPLES[name])
    log.error.assert_not_called()


def test_registrations_select_what_the_original_selects() -> None:
    cloud = "shoot.gardener.cloud/provider"
    found = webhooks_for(service()).values()
    nginx = {"app": "nginx-ingress", "component": "controller", "release": "addons"}
    system = {"kubernetes.io/metadata.name": "kube-system"}

    def expected(name: str, namespaces: JsonObject, objects: JsonObject, policy: str) -> Any:
        return (
            f"{name}.aws.extensions.gardener.cloud", f"/{name}", namespaces, objects, policy,
            "Exact", 10,
        )  # fmt: skip

    def within(key: str) -> JsonObject:
        return {"matchExpressions": [{"key": key, "operator": "In", "values": ["aws"]}]}

    mutated = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"
    unmanaged = [{"key": "resources.gardener.cloud/managed-by", "operator": "DoesNotExist"}]
    assert [
        (
            each.registration.name,
            each.registration.path,
            each.registration.namespace_selector,
            each.registration.object_selector,
            each.registration.failure_policy,
            each.registration.match_policy,
            each.registration.timeout_seconds,
        )
        for each in found
    ] == [
        expected(
            "cloudprovider",
            within(cloud),
            {"matchLabels": {"gardener.cloud/purpose": "cloudprovider"}},
            "Fail",
        ),
        expected("controlplane", within(cloud), {"matchLabels": {mutated: "true"}}, "Fail"),
        expected("seed-pvca", {}, {}, "Fail"),
        expected("seedprovider", within("seed.gardener.cloud/provider"), {}, "Fail"),
        expected("shoot-configmap", {"matchLabels": system}, {"matchLabels": nginx}, "Ignore"),
        expected("shoot-service", {}, {"matchExpressions": unmanaged}, "Ignore"),
        expected(
            "shoot-service-nginx-ingress",
            {"matchLabels": system},
            {"matchLabels": nginx},
            "Ignore",
        ),
    ]
    assert [each.of_shoots for each in found] == [False] * 4 + [True] * 3


def test_deletions_and_leases_are_never_reviewed() -> None:
    """A server that is away must not keep objects from going, or leaders from being elected."""
    for webhook in webhooks_for(service()).values():
        registration = webhook.registration
        assert registration.timeout_seconds <= 10
        for rule in registration.rules:
            assert {*rule.operations} <= {"CREATE", "UPDATE"}
            assert {"*", "leases"}.isdisjoint(rule.resources)
