"""Explanations of why webhooks change or ignore an object."""

import pytest

from pergola.admission.review import Edit
from pergola.api.kinds import NODE, POD
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import (
    CrdDeletionProtection,
    PodSchedulerName,
    ProjectedTokenMount,
    SystemComponentsConfig,
    Webhooks,
)
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.explanation import (
    REVIEWED_KINDS,
    Explanation,
    Question,
    applied,
    explain,
    reviewed_kind,
)
from pergola.resource_manager.webhooks.installation import Installation
from tests.support.reviews import pod

SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


async def explained(
    settings: Webhooks, obj: JsonObject, *documents: JsonObject, **question: object
) -> list[Explanation]:
    kind = reviewed_kind(GroupVersionKind.of(obj))
    assert kind
    fields = {"namespace": "kube-system", "namespace_labels": SYSTEM} | question
    around = Dependencies(Installation("target"), DocumentLookups(documents))
    asked = Question(kind=kind, obj=obj, **fields)  # type: ignore[arg-type] # of its fields
    return await explain(asked, webhooks(settings, around))


async def test_a_change_has_a_path_a_value_and_a_rule() -> None:
    (said,) = await explained(Webhooks(seccomp_profile=Switch(enabled=True)), pod())
    assert (said.outcome, said.webhook) == ("changed", "seccomp-profile.resources.gardener.cloud")
    assert said.edits == (
        Edit(
            "add",
            "/spec/securityContext",
            {"seccompProfile": {"type": "RuntimeDefault"}},
            "the pod names no seccomp profile",
        ),
    )


@pytest.mark.parametrize(
    ("labels", "namespace_labels", "because"),
    [
        (
            {"seccompprofile.resources.gardener.cloud/skip": "x"},
            SYSTEM,
            "the object's labels do not match: !seccompprofile.resources.gardener.cloud/skip",
        ),
        (
            {},
            {"kubernetes.io/metadata.name": "default"},
            (
                "the namespace's labels do not match: "
                "kubernetes.io/metadata.name in (kube-system,kubernetes-dashboard)"
            ),
        ),
    ],
)
async def test_an_unselected_object_is_explained_with_the_label(
    labels: dict[str, str], namespace_labels: dict[str, str], because: str
) -> None:
    (said,) = await explained(
        Webhooks(seccomp_profile=Switch(enabled=True)),
        pod(metadata={"labels": labels}),
        namespace_labels=namespace_labels,
    )
    assert (said.outcome, said.because, said.about) == ("not asked", because, True)


async def test_unknown_labels_of_the_namespace_are_assumed() -> None:
    settings = Webhooks(seccomp_profile=Switch(enabled=True))
    (said,) = await explained(settings, pod(), namespace_labels=None)
    assert said.outcome == "changed"
    assert said.assuming == (
        "the labels of namespace kube-system match: "
        "kubernetes.io/metadata.name in (kube-system,kubernetes-dashboard)"
    )
    settings = Webhooks(pod_scheduler_name=PodSchedulerName(enabled=True, scheduler_name="x"))
    (said,) = await explained(settings, pod(), namespace_labels=None)
    assert said.assuming == ""


async def test_missing_facts_are_requested_from_the_user() -> None:
    settings = Webhooks(projected_token_mount=ProjectedTokenMount(enabled=True))
    (said,) = await explained(settings, pod(serviceAccountName="web"))
    assert said.outcome == "unknown"
    assert said.because.startswith("ServiceAccount kube-system/web is in none of the files")
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "web", "namespace": "kube-system"},
    }
    (said,) = await explained(settings, pod(serviceAccountName="web"), account)
    assert said.outcome == "unchanged"
    assert said.because == "ServiceAccount kube-system/web mounts its token itself"


async def test_each_webhook_sees_earlier_changes() -> None:
    # Two with the same rule: the first sets the scheduler, so the second has nothing to do.
    around = Dependencies(Installation("target"), DocumentLookups([]))
    on = PodSchedulerName(enabled=True, scheduler_name="x")
    (webhook,) = webhooks(Webhooks(pod_scheduler_name=on), around)
    kind = reviewed_kind(POD)
    assert kind
    first, second = await explain(Question(kind=kind, obj=pod()), [webhook, webhook])
    assert (first.outcome, second.outcome) == ("changed", "unchanged")
    assert second.because == "the pod names the scheduler x"


async def test_a_refusal_has_its_message() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a", "labels": {"gardener.cloud/deletion-protected": "true"}},
    }
    settings = Webhooks(crd_deletion_protection=CrdDeletionProtection(enabled=True))
    kind = reviewed_kind(GroupVersionKind.of(crd))
    assert kind
    assert not kind.namespaced
    around = Dependencies(Installation("runtime"), DocumentLookups([]))
    question = Question(kind=kind, obj=crd, operation="DELETE", old=crd)
    said, other = await explain(question, webhooks(settings, around))
    assert (said.outcome, said.code) == ("refused", 403)
    assert "CustomResourceDefinition a has none" in said.because
    assert (other.outcome, other.about) == ("not asked", False)


async def test_overridden_choices_are_warnings() -> None:
    settings = Webhooks(
        system_components_config=SystemComponentsConfig(
            enabled=True, pod_node_selector={"pool": "system"}
        )
    )
    managed = {"labels": {"resources.gardener.cloud/managed-by": "gardener"}}
    (said,) = await explained(settings, pod(metadata=managed, nodeSelector={"pool": "mine"}))
    assert said.outcome == "changed"
    assert "was replaced" in said.warnings[0]


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        ([Edit("add", "/a~1b", 1, "")], {"l": [1, 2], "m": {"x": 1}, "a/b": 1}),
        ([Edit("remove", "/m/x", None, "")], {"l": [1, 2], "m": {}}),
        ([Edit("replace", "/l/0", 9, "")], {"l": [9, 2], "m": {"x": 1}}),
        ([Edit("add", "/l/0", 9, "")], {"l": [9, 1, 2], "m": {"x": 1}}),
        ([Edit("add", "/l/-", 9, "")], {"l": [1, 2, 9], "m": {"x": 1}}),
        (
            [Edit("remove", "/l/1", None, ""), Edit("remove", "/l/0", None, "")],
            {"l": [], "m": {"x": 1}},
        ),
    ],
)
def test_edits_apply_to_a_copy(edits: list[Edit], after: JsonObject) -> None:
    before: JsonObject = {"l": [1, 2], "m": {"x": 1}}
    assert applied(before, edits) == after
    assert before == {"l": [1, 2], "m": {"x": 1}}


def test_every_kind_of_a_rule_is_known() -> None:
    settings = Webhooks()
    for name in settings.__struct_fields__:
        switch: Switch = getattr(settings, name)
        switch.enabled = name != "kubernetes_service_host"
    known = {(kind.gvk.group, kind.plural) for kind in REVIEWED_KINDS}
    around = Dependencies(Installation("runtime"), DocumentLookups([]))
    for webhook in webhooks(settings, around):
        entry = webhook.registration
        for rule in entry.rules:
            assert {(g, r) for g in rule.groups for r in rule.resources} <= known, entry.name


def test_other_versions_of_a_kind_are_the_same_kind() -> None:
    kind = reviewed_kind(GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler"))
    assert kind
    assert (kind.gvk.version, kind.plural) == ("v1", "horizontalpodautoscalers")
    assert reviewed_kind(NODE) is None
