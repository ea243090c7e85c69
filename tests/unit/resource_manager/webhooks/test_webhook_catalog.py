"""The served webhooks, and the requests that they receive: spec 12 §2."""

from typing import Any

import pytest

from pergola.admission.review import GroupVersionResource
from pergola.admission.selection import Candidate, why_not_selected
from pergola.admission.webhook import Webhook, handlers, registrations
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import KubernetesServiceHost, Webhooks
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.seccomp_profile import registrations as registrations_of
from pergola.resource_manager.webhooks.seccomp_profile import review

RUNTIME, TARGET = Installation("runtime"), Installation("target")
SYSTEM = ["kube-system", "kubernetes-dashboard"]
NAME = "kubernetes.io/metadata.name"
NAMESPACES: dict[str, list[JsonObject]] = {
    "runtime": [
        {"key": "gardener.cloud/role", "operator": "Exists"},
        {"key": NAME, "operator": "NotIn", "values": SYSTEM},
    ],
    "target": [{"key": NAME, "operator": "In", "values": SYSTEM}],
}
MANAGED = {"resources.gardener.cloud/managed-by": "gardener"}
GRM = {"key": "app", "operator": "NotIn", "values": ["gardener-resource-manager"]}
SP = {"key": "static-pod", "operator": "NotIn", "values": ["true"]}
K = {
    "key": "apiserver-proxy.networking.gardener.cloud/inject",
    "operator": "NotIn",
    "values": ["disable"],
}
PODS = ("", ["v1"], ["pods"], ["CREATE"])
CHANGES = ["CREATE", "UPDATE"]


def skip(name: str) -> JsonObject:
    return {"key": f"{name}.resources.gardener.cloud/skip", "operator": "DoesNotExist"}


def everything(**off: bool) -> Webhooks:
    settings = Webhooks(kubernetes_service_host=KubernetesServiceHost(host="api.example.com"))
    for name in settings.__struct_fields__:
        switch: Switch = getattr(settings, name)
        switch.enabled = off.get(name, True)
    return settings


def found(settings: Webhooks, installation: Installation = RUNTIME) -> list[Webhook]:
    return webhooks(settings, Dependencies(installation, DocumentLookups([])))


def entries(installation: Installation) -> dict[str, JsonObject]:
    rendered = [entry.render({}) for entry in registrations(found(everything(), installation))]
    return {entry["name"].removesuffix(".resources.gardener.cloud"): entry for entry in rendered}


@pytest.mark.parametrize("kind", ["runtime", "target"])
@pytest.mark.parametrize(
    ("name", "rule", "namespaces", "labels", "expressions", "policy"),
    [
        (
            "token-invalidator",
            ("", ["v1"], ["secrets"], CHANGES),
            "NS",
            {"resources.gardener.cloud/purpose": "token-invalidator"},
            [],
            ("Fail", "Exact", 10),
        ),
        (
            "projected-token-mount",
            PODS,
            "NS",
            None,
            [skip("projected-token-mount"), GRM, SP],
            ("Fail", "Exact", 10),
        ),
        ("pod-scheduler-name", PODS, [], None, [SP], ("Ignore", "Exact", 10)),
        (
            "seccomp-profile",
            PODS,
            "NS",
            None,
            [skip("seccompprofile"), GRM, SP],
            ("Fail", "Exact", 10),
        ),
        ("kubernetes-service-host", PODS, [K], None, [K, SP], ("Ignore", "Exact", 2)),
        (
            "system-components-config",
            PODS,
            "NS",
            "M",
            [skip("system-components-config"), GRM, SP],
            ("Fail", "Exact", 10),
        ),
        (
            "endpoint-slice-hints",
            ("discovery.k8s.io", ["v1"], ["endpointslices"], CHANGES),
            "NS",
            {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"},
            [],
            ("Fail", "Equivalent", 10),
        ),
        (
            "pod-topology-spread-constraints",
            PODS,
            "NS",
            "M",
            [skip("topology-spread-constraints"), GRM, SP],
            ("Fail", "Exact", 10),
        ),
        (
            "vpa-in-place-updates",
            ("autoscaling.k8s.io", ["v1"], ["verticalpodautoscalers"], CHANGES),
            "NS",
            None,
            [skip("vpa-in-place-updates")],
            ("Fail", "Equivalent", 10),
        ),
    ],
)
def test_entries_match_the_table(
    kind: Any,
    name: str,
    rule: tuple[str, list[str], list[str], list[str]],
    namespaces: str | list[JsonObject],
    labels: str | dict[str, str] | None,
    expressions: list[JsonObject],
    policy: tuple[str, str, int],
) -> None:
    entry = entries(Installation(kind))[name]
    (given,) = entry["rules"]
    assert ([given["apiGroups"]], given["apiVersions"]) == ([[rule[0]]], rule[1])
    assert (given["resources"], given["operations"]) == (rule[2], rule[3])
    desired = NAMESPACES[kind] if namespaces == "NS" else namespaces
    assert entry["namespaceSelector"].get("matchExpressions", []) == desired
    if labels == "M":
        labels = MANAGED if kind == "target" else None
    assert entry["objectSelector"].get("matchLabels") == labels
    assert entry["objectSelector"].get("matchExpressions", []) == expressions
    policies = (entry["failurePolicy"], entry["matchPolicy"], entry["timeoutSeconds"])
    assert (policies, entry["reinvocationPolicy"]) == (policy, "Never")
    assert (entry["sideEffects"], entry["admissionReviewVersions"]) == ("None", ["v1", "v1beta1"])


def test_only_a_runtime_cluster_selects_namespaces_with_system_components() -> None:
    consider = {"system-components-config.resources.gardener.cloud/consider": "true"}
    for installation, labels in ((RUNTIME, consider), (TARGET, None)):
        entry = entries(installation)["system-components-config"]
        assert entry["namespaceSelector"].get("matchLabels") == labels


def test_the_order_matches_the_table() -> None:
    names = [
        entry.name.removesuffix(".resources.gardener.cloud")
        for entry in registrations(found(everything()))
    ]
    in_table = [
        "token-invalidator",
        "projected-token-mount",
        "high-availability-config",
        "pod-scheduler-name",
        "seccomp-profile",
        "kubernetes-service-host",
        "pod-kube-apiserver-load-balancing",
        "system-components-config",
        "endpoint-slice-hints",
        "pod-topology-spread-constraints",
        "vpa-in-place-updates",
        "crd-deletion-protection",
        "cr-deletion-protection",
    ]
    assert [name for name in names if name in in_table] == [n for n in in_table if n in names]


def test_a_runtime_cluster_registers_two_validating_entries_and_one_for_each_kind() -> None:
    kinds = [entry.kind for entry in registrations(found(everything()))]
    assert kinds.count("validating") == 2 + 13
    assert kinds == sorted(kinds)
    in_target = registrations(found(everything(), TARGET))
    assert {entry.kind for entry in in_target} == {"mutating"}


@pytest.mark.parametrize("kind", ["runtime", "target"])
def test_hvpas_are_registered_only_if_they_are_served(kind: Any) -> None:
    rules = {
        hvpa: [
            resource
            for rule in entries(Installation(kind, hvpa=hvpa))["high-availability-config"]["rules"]
            for resource in rule["resources"]
        ]
        for hvpa in (False, True)
    }
    assert "hvpas" not in rules[False]
    assert rules[True] == [*rules[False], "hvpas"]


def test_disabled_webhooks_are_neither_registered_nor_served() -> None:
    assert found(Webhooks()) == []
    for name in Webhooks().__struct_fields__:
        some = found(everything(**{name: False}))
        paths = {entry.path for entry in registrations(some)}
        assert paths == set(handlers(some))
    without = handlers(found(everything(seccomp_profile=False)))
    assert "/webhooks/seccomp-profile" not in without


@pytest.mark.parametrize("installation", [RUNTIME, TARGET])
def test_every_entry_is_served(installation: Installation) -> None:
    some = found(everything(), installation)
    assert {entry.path for entry in registrations(some)} <= set(handlers(some))


def test_two_handlers_at_one_path_are_refused() -> None:
    (entry,) = registrations_of(RUNTIME)
    other = Webhook(registration=entry, handler=lambda request: review(request))
    with pytest.raises(ValueError, match="two webhooks answer at /webhooks/seccomp-profile"):
        handlers([*found(everything()), other])


@pytest.mark.parametrize("prefix", ["", "virtual-garden-"])
@pytest.mark.parametrize("kind", ["runtime", "target"])
def test_no_webhook_that_fails_closed_receives_its_own_pods(kind: Any, prefix: str) -> None:
    installation = Installation(kind, prefix)
    labels = {
        "app": installation.name,
        "resources.gardener.cloud/managed-by": "gardener",
        "pod-template-hash": "1",
    }
    for namespace in ("garden", "kube-system"):
        candidate = Candidate(
            "CREATE",
            GroupVersionResource("", "v1", "pods"),
            labels=labels,
            namespace_labels={NAME: namespace, "gardener.cloud/role": "garden"},
        )
        for entry in registrations(found(everything(), installation)):
            selected = why_not_selected(entry.render({}), candidate) is None
            assert not selected or entry.failure_policy == "Ignore", entry.name


def test_static_pods_and_subresources_are_never_sent() -> None:
    for installation in (RUNTIME, TARGET):
        for entry in registrations(found(everything(), installation)):
            for resource, labels in (
                ("pods", {"static-pod": "true"}),
                ("pods/ephemeralcontainers", {}),
                ("pods/status", {}),
                ("deployments/scale", {}),
            ):
                group = "apps" if resource.startswith("deployments") else ""
                gvr = GroupVersionResource(group, "v1", resource)
                for operation in ("CREATE", "UPDATE"):
                    candidate = Candidate(operation, gvr, labels=labels)
                    assert why_not_selected(entry.render({}), candidate), entry.name
