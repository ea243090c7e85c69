"""The registration of Extensions in the virtual cluster (spec 21 §13.2.3)."""

from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.controllers.references import Reference
from pergola.operator.extension.references import references_of
from pergola.operator.extension.registration import (
    controller_deployment,
    controller_registration,
)

CHART: Final[JsonObject] = {
    "ref": "registry.example/dns:1",
    "pullSecretRef": {"name": "pull"},
    "caBundleSecretRef": {"name": "ca"},
}


def extension(annotations: JsonObject | None = None, **fields: Any) -> JsonObject:
    deployment = {"helm": {"ociRepository": CHART}, **fields}
    resources = [
        {
            "kind": "Extension",
            "type": "dns",
            "primary": True,
            "autoEnable": ["garden", "shoot"],
            "clusterCompatibility": ["garden"],
            "reconcileTimeout": "5m",
        }
    ]
    return {
        "metadata": {"name": "dns", "annotations": annotations or {}},
        "spec": {"resources": resources, "deployment": {"extension": deployment}},
    }


def secret(name: str) -> JsonObject:
    return {"kind": "Secret", "metadata": {"name": name, "namespace": "garden"}}


def test_gardenlets_do_not_see_the_cluster_type_garden() -> None:
    registration = controller_registration(extension())

    assert registration["apiVersion"] == "core.gardener.cloud/v1beta1"
    assert registration["spec"]["resources"] == [
        {
            "kind": "Extension",
            "type": "dns",
            "primary": True,
            "autoEnable": ["shoot"],
            "reconcileTimeout": "5m",
        }
    ]


def test_policy_selector_and_pod_security_are_taken_from_the_extension() -> None:
    enforce = {"security.gardener.cloud/pod-security-enforce": "baseline"}
    selector = {"matchLabels": {"a": "b"}}
    of = extension({**enforce, "other": "x"}, policy="Always", seedSelector=selector)

    registration = controller_registration(of)

    assert registration["metadata"]["annotations"] == enforce
    assert registration["spec"]["deployment"] == {
        "deploymentRefs": [{"name": "dns"}],
        "policy": "Always",
        "seedSelector": selector,
    }


def test_the_deployment_refers_to_copies_of_secrets_and_resources() -> None:
    of = extension(values={"a": 1}, injectGardenKubeconfig=True)
    secrets = {"pullSecretRef": secret("pull"), "caBundleSecretRef": secret("ca")}

    deployment = controller_deployment(of, secrets, {"login": secret("login")})

    assert deployment["apiVersion"] == "core.gardener.cloud/v1"
    assert deployment["helm"] == {
        "ociRepository": {
            "ref": "registry.example/dns:1",
            "pullSecretRef": {"name": "dns-pull"},
            "caBundleSecretRef": {"name": "dns-ca"},
        },
        "values": {"a": 1},
    }
    assert deployment["injectGardenKubeconfig"] is True
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "dns-login"}
    assert deployment["resources"] == [{"name": "login", "resourceRef": reference}]
    assert CHART["pullSecretRef"] == {"name": "pull"}


def test_references_of_an_extension_include_pull_secrets_and_resources() -> None:
    of = extension()
    of["spec"]["deployment"]["admission"] = {
        "runtimeCluster": {"helm": {"ociRepository": {"pullSecretRef": {"name": "a"}}}},
        "virtualCluster": {"helm": {"ociRepository": {"caBundleSecretRef": {"name": "b"}}}},
    }
    of["spec"]["deployment"]["resources"] = [
        {"name": "c", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}},
        {"name": "d", "resourceRef": {"apiVersion": "apps/v1", "kind": "Secret", "name": "d"}},
    ]

    named = {(each.kind, each.key.name): each for each in references_of(of)}

    assert named.keys() == {
        ("Secret", "pull"),
        ("Secret", "ca"),
        ("Secret", "a"),
        ("Secret", "b"),
        ("ConfigMap", "c"),
    }
    assert all(isinstance(each, Reference) for each in named.values())
    assert named["ConfigMap", "c"].field == "spec.deployment.resources[0].resourceRef.name"
    assert references_of({"spec": {"deployment": None}}) == ()
