"""Admission of the operator's Extensions, one row for each rule: spec 21 §8.3, §9.2."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.operator.webhooks.extension import defaulting, review
from tests.support.gardens import with_values
from tests.support.reviews import answer, patched, review_of

CHART: JsonObject = {"helm": {"ociRepository": {"ref": "registry.example.org/chart:v1"}}}
VALID: JsonObject = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Extension",
    "metadata": {"name": "provider-local"},
    "spec": {
        "resources": [
            {"kind": "Infrastructure", "type": "local"},
            {"kind": "Extension", "type": "tools", "clusterCompatibility": ["garden", "shoot"]},
        ],
        "deployment": {
            "extension": {
                **CHART,
                "values": {"user": "{{ .resources.account.data.user }}", "replicas": 2},
            },
            "admission": {"runtimeCluster": CHART, "virtualCluster": CHART},
            "resources": [
                {
                    "name": "account",
                    "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "account"},
                }
            ],
        },
    },
}
DEPLOYMENT = "spec.deployment"
OCI = f"{DEPLOYMENT}.extension.helm.ociRepository"
INFRASTRUCTURE = {"kind": "Infrastructure", "type": "local"}

RULES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("a complete Extension is admitted", {}, []),
    ("there is a deployment", {DEPLOYMENT: ...}, [("Required", DEPLOYMENT)]),
    ("the deployment deploys something", {DEPLOYMENT: {}}, [("Required", DEPLOYMENT)]),
    (
        "names of referenced objects are words",
        {
            f"{DEPLOYMENT}.resources": [
                {"name": "a-b", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "a"}}
            ],
            f"{DEPLOYMENT}.extension.values": {},
        },
        [("Invalid", f"{DEPLOYMENT}.resources[0].name")],
    ),
    (
        "referenced objects are Secrets and ConfigMaps",
        {
            f"{DEPLOYMENT}.resources": [
                {"name": "account", "resourceRef": {"apiVersion": "v1", "kind": "Pod", "name": "a"}}
            ]
        },
        [("NotSupported", f"{DEPLOYMENT}.resources[0].resourceRef.kind")],
    ),
    (
        "an extension has a chart",
        {f"{DEPLOYMENT}.extension": {}},
        [("Required", f"{DEPLOYMENT}.extension.helm")],
    ),
    (
        "a chart is in a registry",
        {f"{DEPLOYMENT}.extension": {"helm": {}}},
        [("Required", OCI)],
    ),
    (
        "an admission component has a part in one cluster at least",
        {f"{DEPLOYMENT}.admission": {}},
        [("Required", f"{DEPLOYMENT}.admission")],
    ),
    (
        "both parts of an admission component have a chart",
        {f"{DEPLOYMENT}.admission": {"runtimeCluster": {}, "virtualCluster": {}}},
        [
            ("Required", f"{DEPLOYMENT}.admission.runtimeCluster.helm"),
            ("Required", f"{DEPLOYMENT}.admission.virtualCluster.helm"),
        ],
    ),
    (
        "a full reference stands alone",
        {OCI: {"ref": "a", "repository": "b", "tag": "c", "digest": "d"}},
        [
            ("Forbidden", f"{OCI}.repository"),
            ("Forbidden", f"{OCI}.tag"),
            ("Forbidden", f"{OCI}.digest"),
        ],
    ),
    (
        "without a full reference there are repository and tag",
        {OCI: {}},
        [("Required", f"{OCI}.repository"), ("Required", f"{OCI}.tag")],
    ),
    (
        "a digest is one of SHA-256",
        {OCI: {"repository": "a", "digest": "md5:1"}},
        [("Invalid", f"{OCI}.digest")],
    ),
    (
        "an empty digest is one that was set",
        {OCI: {"repository": "a", "tag": "b", "digest": ""}},
        [("Invalid", f"{OCI}.digest")],
    ),
    (
        "an empty ref is one that was set",
        {OCI: {"ref": "", "repository": "a", "tag": "b"}},
        [("Forbidden", f"{OCI}.repository"), ("Forbidden", f"{OCI}.tag")],
    ),
    (
        "an expression in values names a key of a declared object",
        {
            f"{DEPLOYMENT}.extension.values": {
                "a": [{"b": "{{ .resources.other.data.user }}"}],
                "c": "{{ .Values.x }}",
                "d": "{{ .resources.account.data.user",
            },
            f"{DEPLOYMENT}.extension.runtimeClusterValues": {"a": "}}"},
            f"{DEPLOYMENT}.admission.values": {"{{ x }}": 1},
        },
        [
            ("Invalid", f"{DEPLOYMENT}.extension.values"),
            ("Invalid", f"{DEPLOYMENT}.extension.values"),
            ("Invalid", f"{DEPLOYMENT}.extension.values"),
            ("Invalid", f"{DEPLOYMENT}.extension.runtimeClusterValues"),
            ("Invalid", f"{DEPLOYMENT}.admission.values"),
        ],
    ),
    (
        "a resource has a known kind and a type",
        {"spec.resources": [{"kind": "Toaster", "type": ""}]},
        [("NotSupported", "spec.resources[0].kind"), ("Required", "spec.resources[0].type")],
    ),
    (
        "a kind is served once per type",
        {"spec.resources": [INFRASTRUCTURE] * 2},
        [("Duplicate", "spec.resources[1]")],
    ),
    (
        "some settings are for Extensions only",
        {
            "spec.resources": [
                INFRASTRUCTURE
                | {
                    "autoEnable": ["shoot"],
                    "clusterCompatibility": ["shoot"],
                    "reconcileTimeout": "1m",
                    "lifecycle": {},
                    "continuousEndpointUpdate": True,
                }
            ]
        },
        [
            ("Forbidden", "spec.resources[0].autoEnable"),
            ("Forbidden", "spec.resources[0].clusterCompatibility"),
            ("Forbidden", "spec.resources[0].reconcileTimeout"),
            ("Forbidden", "spec.resources[0].lifecycle"),
            ("Forbidden", "spec.resources[0].continuousEndpointUpdate"),
        ],
    ),
    (
        "clusters are known, unique, and enabled only if compatible",
        {
            "spec.resources": [
                {
                    "kind": "Extension",
                    "type": "a",
                    "clusterCompatibility": ["moon", "shoot", "shoot"],
                    "autoEnable": ["seed", "shoot"],
                }
            ]
        },
        [
            ("NotSupported", "spec.resources[0].clusterCompatibility[0]"),
            ("Duplicate", "spec.resources[0].clusterCompatibility[2]"),
            ("Forbidden", "spec.resources[0].autoEnable[0]"),
        ],
    ),
    (
        "only reconciliation may wait for Workers",
        {
            "spec.resources": [
                {
                    "kind": "Extension",
                    "type": "a",
                    "lifecycle": {
                        "reconcile": "AfterWorker",
                        "delete": "AfterWorker",
                        "migrate": "Never",
                    },
                }
            ]
        },
        [
            ("NotSupported", "spec.resources[0].lifecycle.delete"),
            ("NotSupported", "spec.resources[0].lifecycle.migrate"),
        ],
    ),
    (
        "a name is not that of another Extension's part",
        {"metadata.name": "admission-runtime-a"},
        [("Invalid", "metadata.name")],
    ),
]


@pytest.mark.parametrize(("values", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule(values: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    causes = review.check_extension(with_values(VALID, values), None)

    assert [(c.reason.removeprefix("FieldValue"), c.field) for c in causes] == expected


async def test_all_violations_are_causes_of_one_refusal() -> None:
    broken = with_values(VALID, {DEPLOYMENT: ..., "spec.resources": [INFRASTRUCTURE] * 2})

    verdict = await answer(review.review, review_of(broken))

    assert (verdict.code, [cause.field for cause in verdict.causes]) == (
        422,
        [DEPLOYMENT, "spec.resources[1]"],
    )


async def test_an_update_that_keeps_the_spec_is_always_admitted() -> None:
    broken = with_values(VALID, {DEPLOYMENT: ...})
    new = with_values(broken, {"metadata.labels": {"a": "b"}})

    assert (await answer(review.review, review_of(new, "UPDATE", old_object=broken))).allowed


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [(None, True, True), (True, None, True), (None, False, False), (False, True, False)],
)
def test_the_primary_extension_of_a_resource_is_immutable(
    old: bool | None, new: bool | None, is_same: bool
) -> None:
    before = with_values(VALID, {"spec.resources": [INFRASTRUCTURE | {"primary": old}]})
    after = with_values(VALID, {"spec.resources": [INFRASTRUCTURE | {"primary": new}]})

    fields = [cause.field for cause in review.check_extension(after, before)]

    assert fields == ([] if is_same else ["spec.resources[0].primary"])


def required(runtime: str, virtual: str) -> JsonObject:
    conditions = [
        {"type": "RequiredRuntime", "status": runtime, "message": "by the garden"},
        {"type": "RequiredVirtual", "status": virtual, "message": "by a seed"},
    ]
    return with_values(VALID, {"status": {"conditions": conditions}})


@pytest.mark.parametrize(
    ("runtime", "virtual", "reasons"),
    [
        ("True", "False", '"by the garden"'),
        ("False", "True", '"by a seed"'),
        ("True", "True", '"by the garden", "by a seed"'),
    ],
)
async def test_a_required_extension_is_not_deleted(
    runtime: str, virtual: str, reasons: str
) -> None:
    verdict = await answer(review.review, review_of(required(runtime, virtual), "DELETE"))

    assert (verdict.code, verdict.message) == (
        403,
        f"extension is still being required: {reasons}",
    )


@pytest.mark.parametrize("extension", [VALID, required("False", "False")])
async def test_an_extension_that_is_not_required_is_deleted(extension: JsonObject) -> None:
    assert (await answer(review.review, review_of(extension, "DELETE"))).allowed


DEFAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "an extension is responsible unless declared otherwise",
        {"spec.resources": [INFRASTRUCTURE, {"kind": "Network", "type": "a", "primary": False}]},
        {
            "spec.resources": [
                INFRASTRUCTURE | {"primary": True},
                {"kind": "Network", "type": "a", "primary": False},
            ]
        },
    ),
    (
        "an extension for Workers gets a kubeconfig",
        {"spec.resources": [{"kind": "Worker", "type": "a", "primary": True}]},
        {f"{DEPLOYMENT}.extension.injectGardenKubeconfig": True},
    ),
    (
        "an extension for Workers may refuse a kubeconfig",
        {
            "spec.resources": [{"kind": "Worker", "type": "a", "primary": True}],
            f"{DEPLOYMENT}.extension.injectGardenKubeconfig": False,
        },
        {},
    ),
    (
        "what is enabled for shoots is compatible with them",
        {
            "spec.resources": [
                {"kind": "Extension", "type": "a", "primary": True, "autoEnable": ["shoot"]}
            ]
        },
        {
            "spec.resources": [
                {
                    "kind": "Extension",
                    "type": "a",
                    "primary": True,
                    "autoEnable": ["shoot"],
                    "clusterCompatibility": ["shoot"],
                }
            ]
        },
    ),
    (
        "what is enabled elsewhere gets no compatibility",
        {
            "spec.resources": [
                {"kind": "Extension", "type": "a", "primary": True, "autoEnable": ["garden"]}
            ]
        },
        {},
    ),
]


@pytest.mark.parametrize(
    ("given", "expected"), [r[1:] for r in DEFAULTS], ids=[r[0] for r in DEFAULTS]
)
async def test_a_default(given: dict[str, Any], expected: dict[str, Any]) -> None:
    extension = with_values(VALID, given)

    stored = patched(extension, await answer(defaulting.default, review_of(extension)))

    assert stored == with_values(extension, expected)
    assert (await answer(defaulting.default, review_of(stored))).edits == ()


@pytest.mark.parametrize("spec", [None, {}, {"resources": 1}, {"resources": [1], "deployment": 1}])
async def test_a_malformed_extension_is_left_to_validation(spec: Any) -> None:
    assert (await answer(defaulting.default, review_of(VALID | {"spec": spec}))).edits == ()
