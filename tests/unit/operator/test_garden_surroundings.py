"""Webhooks that protect a Garden's namespace and audit policies (spec 21 §9.1, §9.3)."""

from typing import Any

import pytest

from pergola.admission import Verdict
from pergola.api.objects import JsonObject, Key
from pergola.kube.errors import Unreachable
from pergola.operator.webhooks.audit_policy import audit_policies, policy_problems
from pergola.operator.webhooks.namespace import namespace_deletion
from tests.support.fixed_lookups import FixedLookups
from tests.support.gardens import GARDENER, MINIMAL, RUNTIME, SERVER, VIRTUAL, with_values
from tests.support.reviews import answer, review_of

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"
REFERENCE = "auditConfig.auditPolicy.configMapRef"
AUDITED = with_values(
    MINIMAL,
    {
        f"{SERVER}.{REFERENCE}": {"name": "kube"},
        f"{GARDENER}.gardenerAPIServer.{REFERENCE}": {"name": "gardener"},
    },
)


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str, data: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "garden"},
        "data": data,
    }


async def deletion_of(name: str, **lookups: Any) -> Verdict:
    handler = namespace_deletion(FixedLookups(**lookups)).handler
    return await answer(handler, review_of(namespace(name), "DELETE", name=name))


async def test_the_namespace_cannot_be_deleted_while_a_garden_exists() -> None:
    verdict = await deletion_of("garden", existing_gardens=[MINIMAL])

    assert (verdict.code, verdict.message) == (
        403,
        (
            'deletion of namespace "garden" is forbidden while a Garden resource exists - delete '
            "it first before deleting the namespace"
        ),
    )


async def test_the_namespace_can_be_deleted_without_a_garden() -> None:
    assert (await deletion_of("garden")).allowed


async def test_other_namespaces_can_be_deleted_even_if_the_cluster_is_unreachable() -> None:
    assert (await deletion_of("other", error=Unreachable("no answer"))).allowed


async def test_the_namespace_cannot_be_deleted_if_the_cluster_is_unreachable() -> None:
    verdict = await deletion_of("garden", error=Unreachable("no answer"))

    assert (verdict.allowed, verdict.code) == (False, 500)


async def judged(new: JsonObject, old: JsonObject | None = None, **policies: JsonObject) -> Verdict:
    maps = {Key("garden", name): config_map(name, data) for name, data in policies.items()}
    handler = audit_policies(FixedLookups(existing_gardens=[AUDITED], config_maps=maps)).handler
    operation: Any = "CREATE" if old is None else "UPDATE"
    return await answer(handler, review_of(new, operation, old_object=old))


async def test_a_garden_with_valid_policies_is_admitted() -> None:
    verdict = await judged(AUDITED, kube={"policy": POLICY}, gardener={"policy": POLICY})

    assert verdict.allowed


async def test_every_missing_or_invalid_policy_is_reported_with_its_field() -> None:
    verdict = await judged(AUDITED, gardener={"policy": "rules: 1"})

    assert verdict.code == 422
    assert [cause.field for cause in verdict.causes] == [
        f"{SERVER}.{REFERENCE}.name",
        f"{GARDENER}.gardenerAPIServer.{REFERENCE}.name",
    ]
    assert "ConfigMap garden/kube does not exist" in verdict.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (AUDITED, with_values(AUDITED, {"metadata.labels": {"a": "b"}})),
        (AUDITED, with_values(AUDITED, {f"{RUNTIME}.provider.zones": ["a"]})),
        (MINIMAL, with_values(AUDITED, {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"})),
        (AUDITED, MINIMAL),
    ],
    ids=["other labels", "other zones", "being deleted", "no policies"],
)
async def test_policies_are_not_read_if_nothing_relevant_changed(
    old: JsonObject, new: JsonObject
) -> None:
    assert (await judged(new, old)).allowed


@pytest.mark.parametrize(
    "change",
    [
        {f"{VIRTUAL}.kubernetes.version": "1.35.0"},
        {f"{SERVER}.{REFERENCE}": {"name": "other"}},
    ],
)
async def test_policies_are_read_if_they_or_the_version_change(change: dict[str, Any]) -> None:
    assert (await judged(with_values(AUDITED, change), AUDITED)).code == 422


async def test_a_policy_in_use_must_stay_valid() -> None:
    old, new = config_map("kube", {"policy": POLICY}), config_map("kube", {"policy": "- x: ["})

    verdict = await judged(new, old)

    assert (verdict.code, [cause.field for cause in verdict.causes]) == (422, ["data.policy"])


@pytest.mark.parametrize(
    ("name", "new"),
    [("other", {"policy": "nonsense"}), ("kube", {"policy": "rules: 1", "extra": "a"})],
    ids=["not referred to", "unchanged"],
)
async def test_other_config_maps_may_change(name: str, new: JsonObject) -> None:
    old = config_map(name, {"policy": "rules: 1"})

    assert (await judged(config_map(name, new), old)).allowed


HEADER = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
POLICIES: list[tuple[str, list[str]]] = [
    (POLICY, []),
    (HEADER, []),
    (
        HEADER
        + "omitStages: [RequestReceived]\nrules:\n- level: None\n  nonResourceURLs: [/healthz*]"
        "\n- level: Request\n  resources: [{group: apps, resources: [deployments]}]\n",
        [],
    ),
    ("- a", ["data.policy: must be a map"]),
    (
        "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n",
        ["data.policy: must be a Policy of audit.k8s.io/v1, not Policy of audit.k8s.io/v1beta1"],
    ),
    (HEADER + "rules: 1\n", ["data.policy: rules must be a list"]),
    (
        HEADER + "rules: [1, {}]\n",
        ["data.policy: rules[0] must be a map", "data.policy: rules[1].level is required"],
    ),
    (
        HEADER + "rules: [{level: All}]\n",
        ["data.policy: rules[0].level must be one of None, Metadata, Request, RequestResponse"],
    ),
    (
        HEADER + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]\n",
        [
            (
                "data.policy: rules[0].nonResourceURLs: rules cannot apply to both resources and "
                "non-resource URLs"
            )
        ],
    ),
    (
        HEADER + "rules: [{level: None, nonResourceURLs: ['*', a, /*/b]}]\n",
        [
            'data.policy: rules[0].nonResourceURLs: "a" must begin with "/" or be "*"',
            'data.policy: rules[0].nonResourceURLs: "/*/b" can have a "*" only at its end',
        ],
    ),
    (
        HEADER + "rules: [{level: None, resources: [{group: apps/v1, resourceNames: [a]}]}]\n",
        [
            (
                "data.policy: rules[0].resources[0].group must be the name of an API group, "
                "without its version"
            ),
            "data.policy: rules[0].resources[0].resourceNames requires at least one resource",
        ],
    ),
    (
        HEADER + "omitStages: [Begin]\n",
        [
            (
                "data.policy: omitStages must have only stages of RequestReceived, "
                "ResponseStarted, ResponseComplete, Panic"
            )
        ],
    ),
]


@pytest.mark.parametrize(("text", "problems"), POLICIES)
def test_policies_are_validated_like_in_kube_apiserver(text: str, problems: list[str]) -> None:
    assert policy_problems(config_map("a", {"policy": text})) == problems


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "data.policy is missing"),
        ({"other": "a"}, "data.policy is missing"),
        ({"policy": ""}, "data.policy is empty"),
    ],
)
def test_a_missing_or_empty_policy_is_refused(data: Any, problem: str) -> None:
    assert policy_problems(config_map("a", data)) == [problem]
