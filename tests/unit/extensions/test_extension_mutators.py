"""Changes by mutating webhooks of extensions, and ignored objects (spec 40 §7)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.draft import Draft
from pergola.admission.protocol import Reviewer
from pergola.admission.review import GroupVersionResource, Handler, Operation, Request, Verdict
from pergola.admission.webhook import Webhook
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.webhooks.clouds import AZURE
from pergola.extensions.webhooks.declare import WebhookError
from pergola.extensions.webhooks.mutation import LeftAlone, Mutate, from_objects, mutating
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.extensions.webhooks.objects_mutator import (
    ObjectMutation,
    control_plane_mutator,
    shoot_objects_mutator,
)
from pergola.extensions.webhooks.provider_configs import ConfigRule, config_mutator
from pergola.extensions.webhooks.shoot_mutator import (
    KUBE_PROXY_OFF,
    OVERLAY_OFF,
    ShootDefault,
    shoot_mutator,
)
from pergola.kube.errors import ApiError
from pergola.resource_manager.webhooks.explanation import applied
from pergola.runtime.metrics import Metrics
from tests.support.reviews import answer, review_of

CALICO = "calico.networking.extensions.gardener.cloud"
CONFIG = {"apiVersion": f"{CALICO}/v1alpha1", "kind": "NetworkConfig"}
WEBHOOK = network_mutator("provider-azure", "azure", AZURE)


def network(config: JsonObject | None = None, kind: str = "calico", **metadata: Any) -> JsonObject:
    spec: JsonObject = {"type": kind, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    if config is not None:
        spec["providerConfig"] = config
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": {"name": "net", "namespace": "shoot--a--b", **metadata},
        "spec": spec,
    }


def shoot(**parts: Any) -> JsonObject:
    """Return a Shoot with cilium on a cloud; `parts` are merged into its spec."""
    spec: JsonObject = {
        "networking": {"type": "cilium"},
        "provider": {"type": "gcp", "workers": [{"name": "w"}]},
        "kubernetes": {"version": "1.36.0"},
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "web", "namespace": "garden-dev"},
        "spec": spec | parts,
    }


def ask(webhook: Webhook, new: JsonObject, old: JsonObject | None = None) -> Verdict:
    operation: Operation = "CREATE" if old is None else "UPDATE"
    verdict = webhook.handler(review_of(new, operation, old_object=old))
    assert isinstance(verdict, Verdict)
    return verdict


def after(webhook: Webhook, new: JsonObject, old: JsonObject | None = None) -> JsonObject:
    """Return the object as it would be stored."""
    verdict = ask(webhook, new, old)
    assert verdict.allowed, verdict.message
    return applied(new, verdict.edits)


def test_the_webhook_of_a_cloud_is_registered_as_the_contract_requires() -> None:
    entry = WEBHOOK.registration.render({"url": "https://x/network"})
    assert entry == {
        "name": "network.azure.extensions.gardener.cloud",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"url": "https://x/network"},
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "shoot.gardener.cloud/provider", "operator": "In", "values": ["azure"]},
                {
                    "key": "networking.shoot.gardener.cloud/provider",
                    "operator": "In",
                    "values": ["calico"],
                },
            ]
        },
        "objectSelector": {},
        "rules": [
            {
                "apiGroups": ["extensions.gardener.cloud"],
                "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["networks"],
                "scope": "*",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }
    assert WEBHOOK.registration.path == "/network"


# Mutators that read something first


def reading(*mutators: Mutate) -> Handler:
    return mutating(lambda _, __: mutators)


async def read_first(draft: Draft, _: JsonObject | None) -> None:
    draft.set(("spec", "read"), "first", "it has to be read")


def then(draft: Draft, _: JsonObject | None) -> None:
    draft.set(("spec", "then"), draft.get("spec", "read"), "it comes after")


async def left_alone(_: Draft, __: JsonObject | None) -> None:
    raise LeftAlone("nobody knows")


async def unreadable(_: Draft, __: JsonObject | None) -> None:
    raise ApiError(503, {"message": "try again"})


async def test_mutators_wait_for_each_other() -> None:
    verdict = await answer(reading(read_first, then, read_first), review_of(network(), "CREATE"))

    spec = applied(network(), verdict.edits)["spec"]
    assert (spec["read"], spec["then"]) == ("first", "first")


async def test_an_object_that_is_left_alone_is_allowed_with_a_warning() -> None:
    verdict = await answer(reading(left_alone, then), review_of(network(), "CREATE"))

    assert (verdict.allowed, verdict.edits) == (True, ())
    assert verdict.warnings == ("nobody knows",)


async def test_a_refusal_by_the_api_server_is_passed_on() -> None:
    with pytest.raises(ApiError, match="try again"):
        await answer(reading(unreadable), review_of(network(), "CREATE"))


# Must hold


@pytest.mark.parametrize("config", [CONFIG | {"backend": "bird"}, {"backend": "bird"}, CONFIG, {}])
def test_the_backend_of_calico_becomes_none_on_azure(config: JsonObject) -> None:
    stored = after(WEBHOOK, network(config))["spec"]["providerConfig"]
    assert stored == config | {"backend": "none"}


def test_a_network_without_a_config_gets_one_with_its_type() -> None:
    stored = after(WEBHOOK, network())["spec"]["providerConfig"]
    assert stored == CONFIG | {"backend": "none"}


def test_cilium_on_azure_is_unchanged() -> None:
    config = {"apiVersion": "cilium.networking.extensions.gardener.cloud/v1alpha1"}
    assert ask(WEBHOOK, network(config, "cilium")).edits == ()


def test_an_update_of_a_network_that_is_being_deleted_is_neither_changed_nor_refused() -> None:
    going = network({"backend": "bird"}, deletionTimestamp="2026-01-01T00:00:00Z")
    verdict = ask(WEBHOOK, going, going)
    assert verdict.allowed
    assert verdict.edits == ()


# Guarantees of mutators


def test_valid_values_and_unknown_fields_are_kept() -> None:
    config = CONFIG | {"backend": "vxlan", "future": {"a": [1]}, "vethMTU": "1440"}
    assert ask(WEBHOOK, network(config)).edits == ()
    changed = after(WEBHOOK, network(config | {"backend": "bird"}))
    assert changed["spec"]["providerConfig"] == config | {"backend": "none"}


def test_a_config_of_another_group_is_ignored() -> None:
    foreign = {"apiVersion": "other.example.org/v1", "backend": "bird"}
    assert ask(WEBHOOK, network(foreign)).edits == ()


def test_an_overlay_enabled_by_the_user_uses_vxlan() -> None:
    config = after(WEBHOOK, network(CONFIG | {"overlay": {"enabled": True}}))["spec"]
    assert config["providerConfig"]["vxlan"] == {"enabled": True}
    off = after(WEBHOOK, network(CONFIG | {"overlay": {"enabled": False}}))["spec"]
    assert "vxlan" not in off["providerConfig"]


CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from([f"{CALICO}/v1alpha1", "other/v1", ""]),
        "backend": st.sampled_from(["bird", "none", "vxlan", None]),
        "overlay": st.fixed_dictionaries({}, optional={"enabled": st.booleans()}),
        "vxlan": st.fixed_dictionaries({}, optional={"enabled": st.booleans()}),
        "unknown": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    },
)


@given(st.none() | CONFIGS, st.none() | CONFIGS)
def test_a_mutator_does_not_change_its_own_output(
    config: JsonObject | None, old: JsonObject | None
) -> None:
    before = network(old) if old is not None else None
    once = after(WEBHOOK, network(config), before)
    assert ask(WEBHOOK, once, before).edits == ()
    assert ask(WEBHOOK, once, once).edits == ()


def test_a_rule_can_skip_existing_clusters() -> None:
    rule = ConfigRule(path=("mtu",), unfit=(9000,), instead=1500, because="b", spares_existing=True)
    gvk = GroupVersionKind(CALICO, "v1alpha1", "NetworkConfig")
    webhook = network_mutator("provider-x", "x", {"calico": config_mutator(gvk, [rule])})
    new = network({"mtu": 9000})
    assert after(webhook, new)["spec"]["providerConfig"] == {"mtu": 1500}
    assert ask(webhook, new, network({"mtu": 9000})).edits == ()
    assert ask(webhook, new, network({"mtu": 1400})).edits != ()


def test_a_rule_with_an_invalid_replacement_is_refused() -> None:
    with pytest.raises(WebhookError, match="backend: 'none' would replace itself"):
        ConfigRule(path=("backend",), unfit=("bird", "none"), instead="none", because="b")


def test_an_error_of_a_mutator_refuses_the_request_with_its_message() -> None:
    def refuse(draft: Draft, old: JsonObject | None) -> None:
        raise ExtensionError("azure has no such region")

    verdict = ask(network_mutator("provider-x", "x", {"calico": refuse}), network({}))
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert verdict.message == "azure has no such region"


def test_a_review_without_an_object_is_a_bad_request() -> None:
    request = Request(
        uid="u",
        operation="CREATE",
        kind=GroupVersionKind("g", "v", "K"),
        resource=GroupVersionResource("g", "v", "ks"),
    )
    verdict = WEBHOOK.handler(request)
    assert isinstance(verdict, Verdict)
    assert (verdict.allowed, verdict.code) == (False, 400)


def test_a_body_that_is_not_a_review_is_a_bad_request_and_the_server_keeps_running() -> None:
    metrics = Metrics().webhook("/network")
    reviewer = Reviewer("/network", WEBHOOK.handler, metrics)
    answer = reviewer("application/json", b"{]")
    assert isinstance(answer, bytes)
    assert b'"code":400' in answer


# Shoots


CILIUM = shoot_mutator("admission-cilium", [KUBE_PROXY_OFF], network="cilium")
CLOUD = shoot_mutator("admission-gcp", [OVERLAY_OFF], cloud="gcp")


def test_cilium_disables_kube_proxy_in_new_shoots() -> None:
    stored = after(CILIUM, shoot())
    assert stored["spec"]["kubernetes"]["kubeProxy"] == {"enabled": False}
    assert [rule.operations for rule in CILIUM.registration.rules] == [("CREATE",)]
    assert CILIUM.registration.object_selector == {
        "matchLabels": {"networking.extensions.gardener.cloud/cilium": "true"}
    }
    assert CILIUM.registration.path == "/webhooks/mutate"


@pytest.mark.parametrize("explicit", [True, False])
def test_a_user_setting_of_kube_proxy_is_kept(explicit: bool) -> None:
    said = shoot(kubernetes={"kubeProxy": {"enabled": explicit}})
    assert ask(CILIUM, said).edits == ()


@pytest.mark.parametrize(
    "parts",
    [
        {"provider": {"type": "gcp", "workers": []}},
        {"networking": {"type": "calico"}},
        {"networking": {}},
    ],
    ids=["workerless", "calico", "none"],
)
def test_shoots_with_other_networks_are_unchanged(parts: JsonObject) -> None:
    assert ask(CILIUM, shoot(**parts)).edits == ()


def test_existing_shoots_are_unchanged() -> None:
    assert ask(CILIUM, shoot(region="b"), shoot(region="a")).edits == ()


def test_a_cloud_disables_the_overlay_only_in_new_shoots() -> None:
    assert after(CLOUD, shoot())["spec"]["networking"]["providerConfig"] == {
        "overlay": {"enabled": False}
    }
    assert ask(CLOUD, shoot(region="b"), shoot(region="a")).edits == ()


def test_an_omitted_overlay_setting_keeps_its_old_value() -> None:
    before = shoot(networking={"type": "cilium", "providerConfig": {"overlay": {"enabled": True}}})
    stored = after(CLOUD, shoot(), before)
    assert stored["spec"]["networking"]["providerConfig"] == {"overlay": {"enabled": True}}


@pytest.mark.parametrize(
    ("status", "seeds"),
    [
        ({"lastOperation": {"type": "Migrate", "state": "Succeeded"}}, ("a", "a")),
        ({"lastOperation": {"type": "Restore", "state": "Processing"}}, ("a", "a")),
        ({}, ("a", "b")),
        ({"lastOperation": {"type": "Create"}, "seedName": "b"}, ("a", "a")),
    ],
    ids=["migrating", "restoring", "rescheduled", "rescheduled before"],
)
def test_migrating_shoots_are_unchanged(status: JsonObject, seeds: tuple[str, str]) -> None:
    config = {"overlay": {"enabled": True}}
    before = shoot(networking={"type": "cilium", "providerConfig": config}, seedName=seeds[0])
    now = shoot(seedName=seeds[1], region="b") | {"status": status}
    assert ask(CLOUD, now, before).edits == ()


def test_unchanged_specs_and_deleted_shoots_are_not_mutated() -> None:
    assert ask(CLOUD, shoot(), shoot()).edits == ()
    going = shoot()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(CLOUD, going).edits == ()


@given(
    st.lists(st.sampled_from([KUBE_PROXY_OFF, OVERLAY_OFF]), unique_by=id),
    st.sampled_from([{}, {"enabled": True}, {"mode": "IPVS"}]),
    st.none() | st.sampled_from([{}, {"overlay": {}}, {"overlay": {"enabled": True}}]),
)
def test_defaulting_a_shoot_again_changes_nothing(
    defaults: list[ShootDefault], proxy: JsonObject, config: JsonObject | None
) -> None:
    webhook = shoot_mutator("admission-x", defaults, cloud="gcp")
    new = shoot(
        kubernetes={"kubeProxy": proxy}, networking={"type": "cilium", "providerConfig": config}
    )
    once = after(webhook, new)
    assert ask(webhook, once).edits == ()
    assert ask(webhook, once, once).edits == ()


@pytest.mark.parametrize(("network", "cloud"), [("", ""), ("calico", "gcp")])
def test_a_shoot_mutator_is_for_a_network_or_a_cloud(network: str, cloud: str) -> None:
    with pytest.raises(WebhookError, match="for a network or for a cloud"):
        shoot_mutator("admission-x", [], network=network, cloud=cloud)


# Other objects


def config_map(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": {"Corefile": "bind 169.254.20.10", "other": "x"},
    }


def open_bind(obj: JsonObject) -> JsonObject:
    return obj | {"data": obj["data"] | {"Corefile": "bind 0.0.0.0"}}


MUTATION = ObjectMutation(
    resource=GroupVersionResource("", "v1", "configmaps"),
    mutate=from_objects(open_bind, "cilium redirects"),
    prefixes=("node-local-dns-",),
)
LOCAL_DNS = shoot_objects_mutator(
    "networking-cilium",
    "node-local-dns",
    [MUTATION],
    object_selector={"matchLabels": {"k8s-app": "node-local-dns"}},
    failure_policy="Fail",
)


def test_objects_of_shoots_are_changed_by_kind_and_name() -> None:
    verdict = ask(LOCAL_DNS, config_map("node-local-dns-ab12"))
    assert [edit.path for edit in verdict.edits] == ["/data/Corefile"]
    assert after(LOCAL_DNS, config_map("node-local-dns-a"))["data"]["Corefile"] == "bind 0.0.0.0"
    assert ask(LOCAL_DNS, config_map("other")).edits == ()


def test_webhooks_in_shoots_fail_open_by_default() -> None:
    assert LOCAL_DNS.of_shoots
    assert LOCAL_DNS.registration.failure_policy == "Fail"
    other = shoot_objects_mutator("networking-x", "purpose", [MUTATION])
    assert other.registration.failure_policy == "Ignore"
    assert other.registration.namespace_selector == {
        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
    }


def test_only_control_planes_of_the_providers_shoots_are_selected() -> None:
    webhook = control_plane_mutator("provider-azure", [MUTATION, MUTATION], cloud="azure")
    entry = webhook.registration
    assert (entry.name, entry.path) == (
        "controlplane.azure.extensions.gardener.cloud",
        "/controlplane",
    )
    assert not webhook.of_shoots
    assert len(entry.rules) == 1
    assert entry.namespace_selector["matchExpressions"] == [
        {"key": "shoot.gardener.cloud/provider", "operator": "In", "values": ["azure"]}
    ]


OBJECTS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=2), OBJECTS), st.dictionaries(st.text(max_size=2), OBJECTS))
def test_a_function_from_object_to_object_becomes_edits_with_the_same_result(
    old: JsonObject, new: JsonObject
) -> None:
    draft = Draft(old)
    from_objects(lambda _: new, "b")(draft, None)
    assert draft.object == new
