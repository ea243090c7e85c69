"""Documents that register an extension, and their rules (spec 40 §8)."""

import base64
import io
import tarfile
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.bundle.lint import lint
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Actuator, Context
from pergola.extensions.installation import (
    installation_documents,
    installation_of,
    permissions,
    raw_chart,
)
from pergola.extensions.registration import (
    Registration,
    Served,
    check,
    check_update,
    controller_documents,
    extension,
    registration_documents,
)
from pergola.kube.yaml import parse_documents

IMAGE = "registry.example/gardenet@sha256:" + "0" * 64


class Idle(Actuator):
    async def reconcile(self, context: Context, obj: JsonObject) -> None: ...

    async def delete(self, context: Context, obj: JsonObject) -> None: ...

    async def migrate(self, context: Context, obj: JsonObject) -> None: ...


class Gardenet(Idle):
    kind = "Network"
    type = "gardenet"
    name = "networking-gardenet"


class Another(Idle):
    kind = "BackupEntry"
    type = "another"
    name = "provider-another"


GARDENET = Registration(
    name="networking-gardenet",
    resources=[Served("Network", "gardenet")],
    chart="registry.example/charts/gardenet:v1",
)


def registered(*resources: JsonObject, name: str = "x", **deployment: Any) -> JsonObject:
    return {
        "kind": "ControllerRegistration",
        "metadata": {"name": name},
        "spec": {"resources": list(resources), "deployment": deployment},
    }


def network(of_type: str = "gardenet", **more: Any) -> JsonObject:
    return {"kind": "Network", "type": of_type, **more}


def said(document: JsonObject) -> list[str]:
    return [str(cause) for cause in check(document)]


def test_an_operator_needs_only_an_extension() -> None:
    document = extension(GARDENET)
    assert (document["apiVersion"], document["kind"]) == (
        "operator.gardener.cloud/v1alpha1",
        "Extension",
    )
    assert document["metadata"]["annotations"] == {
        "security.gardener.cloud/pod-security-enforce": "baseline"
    }
    assert document["spec"] == {
        "resources": [{"kind": "Network", "type": "gardenet"}],
        "deployment": {
            "extension": {
                "policy": "OnDemand",
                "helm": {"ociRepository": {"ref": "registry.example/charts/gardenet:v1"}},
            }
        },
    }
    assert check(document) == []


def test_without_an_operator_there_are_two_documents() -> None:
    deployment, registration = controller_documents(GARDENET)
    assert deployment["apiVersion"] == "core.gardener.cloud/v1"
    assert deployment["helm"] == {"ociRepository": {"ref": GARDENET.chart}}
    assert registration["apiVersion"] == "core.gardener.cloud/v1beta1"
    assert registration["spec"]["deployment"] == {
        "policy": "OnDemand",
        "deploymentRefs": [{"name": "networking-gardenet"}],
    }
    assert check(registration) == []


def test_an_actuator_registers_itself_with_a_chart_that_installs_it() -> None:
    deployment, registration = registration_documents([Gardenet], ["gardenet:Gardenet"], IMAGE)
    assert registration["spec"]["resources"] == [{"kind": "Network", "type": "gardenet"}]
    packed = base64.b64decode(deployment["helm"]["rawChart"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == [
            f"networking-gardenet/{path}"
            for path in ("Chart.yaml", "values.yaml", "templates/extension.yaml")
        ]
        member = archive.extractfile("networking-gardenet/templates/extension.yaml")
        assert member is not None
        objects = [document.value for document in parse_documents(member.read())]
    installation = installation_of([Gardenet], ["gardenet:Gardenet"], IMAGE)
    assert objects == installation_documents(installation)
    assert raw_chart(installation) == packed


def test_the_objects_of_an_extension_follow_the_house_rules() -> None:
    installation = installation_of([Gardenet], ["gardenet:Gardenet"], IMAGE)
    assert lint(installation_documents(installation)) == []


def test_an_extension_has_only_the_required_permissions() -> None:
    installation = installation_of([Another], ["x"], IMAGE)
    allowed = {
        (resource, verb)
        for rule in permissions(installation)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert ("backupentries", "create") not in allowed
    assert ("backupentries", "delete") not in allowed
    assert ("backupentries/status", "patch") in allowed
    assert ("clusters", "patch") not in allowed
    assert not {("secrets", "list"), ("secrets", "watch"), ("configmaps", "list")} & allowed


def test_the_actuators_of_two_extensions_are_not_registered_together() -> None:
    with pytest.raises(ExtensionError, match="networking-gardenet, provider-another"):
        installation_of([Gardenet, Another], ["x"], IMAGE)


def test_duplicates_are_found_at_any_index() -> None:
    document = registered(network("a"), network("b"), network("a"))
    assert said(document) == ['spec.resources[2]: Duplicate value: "Network/a"']


def test_kind_and_type_are_required() -> None:
    first, second = said(registered({"kind": "Netwrok", "type": "a"}, {"kind": "Network"}))
    assert first.startswith('spec.resources[0].kind: Unsupported value: "Netwrok"')
    assert second == "spec.resources[1].type: Required value: field is required"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("autoEnable", ["shoot"]),
        ("clusterCompatibility", ["shoot"]),
        ("reconcileTimeout", "3m"),
        ("lifecycle", {"reconcile": "AfterKubeAPIServer"}),
    ],
)
def test_a_network_has_no_fields_of_the_kind_extension(name: str, value: Any) -> None:
    (problem,) = said(registered(network(**{name: value})))
    assert problem.startswith(f"spec.resources[0].{name}: Forbidden")
    assert said(registered({"kind": "Extension", "type": "a", name: value})) == []


def test_seed_selectors_are_forbidden_for_primary_resources() -> None:
    (problem,) = said(registered(network(), seedSelector={}))
    assert problem.startswith("spec.deployment.seedSelector: Forbidden")
    assert said(registered(network(primary=False), seedSelector={})) == []
    operated = {**extension(GARDENET), "kind": "Extension"}
    operated["spec"]["deployment"]["extension"]["seedSelector"] = {}
    assert said(operated)[0].startswith("spec.deployment.extension.seedSelector: Forbidden")


def test_only_three_policies_and_one_deployment_are_valid() -> None:
    (problem,) = said(registered(network(), policy="Sometimes"))
    assert problem.startswith('spec.deployment.policy: Unsupported value: "Sometimes"')
    (problem,) = said(registered(network(), deploymentRefs=[{"name": "a"}, {"name": "b"}]))
    assert problem.startswith("spec.deployment.deploymentRefs: Forbidden")


def test_the_primary_registration_is_immutable() -> None:
    (problem,) = map(str, check_update(registered(network(primary=False)), registered(network())))
    assert problem == "spec.resources[0].primary: Invalid value: false: field is immutable"
    assert check_update(registered(network(primary=True)), registered(network())) == []
