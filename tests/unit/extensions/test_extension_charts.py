"""The charts of our extensions render valid objects without unnecessary permissions."""

import copy
from pathlib import Path
from typing import Final

import orjson
import pytest

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.extension_api.kinds import CLUSTER_SCOPED
from pergola.extensions.control_planes.hibernation import NAME as HIBERNATION
from pergola.extensions.installation import (
    Installation,
    installation_documents,
    installation_of,
    permissions,
)
from pergola.extensions.loading import load_actuators
from pergola.extensions.process import controller_names
from pergola.extensions.webhooks.admission import component_of
from pergola.extensions.webhooks.declare import configuration_name
from pergola.extensions.webhooks.permissions import cluster_rules, namespace_rules
from pergola.extensions.workers.updates import NAME as UPDATES
from pergola.kube.yaml import parse
from pergola.operator.extension.names import EXTENSION_CHART, chart_of
from pergola.operator.webhooks.extension.review import check_extension
from pergola.sandbox.helm import render
from tests.support.charts import with_image

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

ROOT: Final = Path(__file__).parents[3]
EXTENSIONS: Final = {
    "networking-calico": "calico",
    "networking-cilium": "cilium",
    "extension-aws": "aws",
}
NETWORKS: Final = ("networking-calico", "networking-cilium")
ALL_KINDS: Final[dict[str, JsonObject]] = {
    "extension-aws": {
        "controlPlanes": {"enabled": True},
        "workers": {"enabled": True},
        "gardener": {
            "seed": {
                "provider": "aws",
                "spec": {"settings": {"persistentVolumeClaimAutoscaler": {"enabled": True}}},
            }
        },
    },
}
"""The values with which the extension of a chart serves all of its kinds, and has all webhooks."""
SWITCHES: Final = {"ControlPlane": "controlPlanes", "Worker": "workers"}
"""Kinds that the original keeps until a value of the chart is set, with the value."""
OPTIONAL: Final = {(kind, "aws") for kind in SWITCHES}
OPTIONS: Final = "--config-file=/etc/pergola/options.yaml"
IN_RUNTIME: Final[JsonObject] = {
    "gardener": {
        "runtimeCluster": {
            "enabled": "true",
            "priorityClassName": "gardener-garden-system-200",
        }
    }
}


def installation(chart: str) -> Installation:
    """Return how the SDK installs the extension of a chart."""
    reference = EXTENSIONS[chart]
    return installation_of(load_actuators([reference]), [reference], "registry.example/pergola")


def rendered(chart: str, values: JsonObject | None = None) -> dict[str, JsonObject]:
    """Return the objects of a chart by kind."""
    found = render(ROOT / "charts" / chart, with_image(values), namespace="extension")
    assert len({(obj["kind"], name_of(obj)) for obj in found}) == len(found)
    return {obj["kind"]: obj for obj in reversed(found)}


def read(path: Path) -> JsonObject:
    found = parse(path.read_text())
    assert isinstance(found, dict)
    return found


def granted(rules: list[JsonObject]) -> set[tuple[str, str, str, str]]:
    """Return each permission as group, resource, verb and name."""
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


def owner(role: JsonObject) -> set[tuple[str, str, str, str]]:
    """Return the permission to read a role that owns webhook configurations."""
    return {("rbac.authorization.k8s.io", "clusterroles", "get", name_of(role))}


@pytest.mark.parametrize("chart", EXTENSIONS)
def test_a_chart_has_the_objects_of_the_sdk(chart: str) -> None:
    on = installation(chart)
    expected = {obj["kind"]: obj for obj in installation_documents(on)}

    found = rendered(chart, ALL_KINDS.get(chart))

    options = found.pop("ConfigMap", None)
    assert found.keys() == expected.keys()
    assert {name_of(obj) for obj in found.values()} == {name_of(obj) for obj in expected.values()}
    pod = map_at(found["Deployment"], "spec", "template", "spec")
    desired = copy.deepcopy(map_at(expected["Deployment"], "spec", "template", "spec"))
    [container], [of_sdk] = maps_at(pod, "containers"), maps_at(desired, "containers")
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    for field in ("securityContext", *probes, "ports", "env"):
        assert set(map(str, container[field])) == set(map(str, of_sdk[field])), field
    assert container["command"] == of_sdk["command"]
    classes = [each for each in container["args"] if each.startswith("--extension-classes")]
    assert classes == ["--extension-classes=shoot"]
    arguments = [each.replace("{{ .Release.Namespace }}", "extension") for each in of_sdk["args"]]
    others = [
        each
        for each in container["args"]
        # Kinds that the chart leaves to others by default.
        if each not in classes and not each.startswith("--disable-controllers")
    ]
    # A namespace outlives a Helm release, but the role does not.
    assert [each for each in others if each != OPTIONS] == [
        each for each in arguments if each != "--webhook-config-owner-namespace=extension"
    ]
    assert (OPTIONS in others) is on.has_webhooks
    if options:
        text = options["data"]["options.yaml"]
        assert text == f"webhookConfigOwnerClusterRole: {name_of(found['ClusterRole'])}\n"
    assert pod["priorityClassName"] == desired["priorityClassName"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("chart", EXTENSIONS)
def test_no_chart_grants_more_than_the_sdk(chart: str) -> None:
    found = rendered(chart)

    excess = granted(maps_at(found["ClusterRole"], "rules")) - granted(
        permissions(installation(chart))
    )
    # A name restricts a permission that the SDK grants for all names.
    wide = granted(permissions(installation(chart)))
    assert {each for each in excess if (*each[:3], "") not in wide} <= owner(found["ClusterRole"])


@pytest.mark.parametrize("chart", NETWORKS)
def test_charts_of_networks_grant_the_permissions_of_the_sdk(chart: str) -> None:
    role = rendered(chart)["ClusterRole"]

    own = granted(maps_at(role, "rules"))
    assert own - owner(role) == granted(permissions(installation(chart)))
    assert owner(role) <= own or not installation(chart).has_webhooks


@pytest.mark.parametrize("chart", EXTENSIONS)
def test_a_ring_has_all_kinds_with_a_namespace_and_its_sharder_may_label_them(chart: str) -> None:
    values: JsonObject = {"sharding": {"controllerRing": "shared"}, **ALL_KINDS.get(chart, {})}
    kinds = {actuator.kind for actuator in load_actuators([EXTENSIONS[chart]])} - CLUSTER_SCOPED
    resources = {f"{kind.lower()}s" for kind in kinds}

    found = render(ROOT / "charts" / chart, with_image(values), namespace="extension")

    [made] = [obj for obj in found if obj["kind"] == "ControllerRing"]
    assert {each["resource"] for each in made["spec"]["resources"]} == resources
    role = next(obj for obj in found if name_of(obj) == "sharding:controllerring:shared")
    assert granted(role["rules"]) == {
        ("extensions.gardener.cloud", resource, verb, "")
        for resource in resources
        for verb in ("list", "patch")
    }
    [workload] = [obj for obj in found if obj["kind"] == "Deployment"]
    [container] = map_at(workload, "spec", "template", "spec")["containers"]
    assert "--sharding-controller-ring=shared" in container["args"]


def test_in_a_runtime_cluster_the_aws_extension_serves_the_garden_and_watches_its_secrets() -> None:
    found = render(
        ROOT / "charts" / "extension-aws", with_image(IN_RUNTIME), namespace="runtime-extension-x"
    )

    [workload] = [obj for obj in found if obj["kind"] == "Deployment"]
    pod = map_at(workload, "spec", "template", "spec")
    assert pod["priorityClassName"] == "gardener-garden-system-200"
    assert "--extension-classes=garden" in pod["containers"][0]["args"]
    [role] = [
        obj for obj in found if obj["metadata"].get("namespace") == "garden" and "rules" in obj
    ]
    assert granted(role["rules"]) == {
        ("", "secrets", verb, "") for verb in ("get", "list", "watch", "patch")
    }
    # A runtime cluster that is a Seed as well has both installations.
    names = {name_of(obj) for obj in found if obj["kind"].startswith("ClusterRole")}
    assert names == {"extension-provider-aws-garden"}


@pytest.mark.parametrize("name", ["networking-calico", "networking-cilium", "pergola-aws"])
def test_each_example_is_a_valid_extension_with_a_chart(name: str) -> None:
    extension = read(ROOT / "examples" / "extensions" / f"{name}.yaml")

    assert list(check_extension(extension, None)) == []
    served = {(each["kind"], each["type"]) for each in maps_at(extension, "spec", "resources")}
    chart = "extension-aws" if name == "pergola-aws" else name
    actuators = load_actuators([EXTENSIONS[chart]])
    assert served == {(a.kind, a.type) for a in actuators} - OPTIONAL
    metadata = read(ROOT / "charts" / chart / "Chart.yaml")
    reference = chart_of(extension, *EXTENSION_CHART)["ref"]
    assert str(reference).endswith(f"/{metadata['name']}:{metadata['version']}")


@pytest.mark.parametrize("reference", ["aws", "calico", "cilium"])
def test_the_admission_charts_are_two_halves_of_one_component(reference: str) -> None:
    component = component_of(load_actuators([reference])[0])
    account = {"name": "extension-admission-x", "namespace": "kube-system"}
    values = with_image({"extension": reference})
    virtual = values | {"gardener": {"virtualCluster": {"serviceAccount": account}}}

    runtime = render(
        ROOT / "charts" / "extension-admission-runtime",
        values | {"gardener": {"virtualCluster": {"enabled": True, "namespace": "extension-x"}}},
    )
    rights = render(
        ROOT / "charts" / "extension-admission-virtual", virtual, namespace="extension-x"
    )

    found = {obj["kind"]: obj for obj in runtime}
    assert name_of(found["Service"]) == configuration_name(component)
    [container] = map_at(found["Deployment"], "spec", "template", "spec")["containers"]
    assert container["command"] == ["pergola", "extension", "admission", reference]
    assert "--kubeconfig=$(GARDEN_KUBECONFIG)" in container["args"]
    assert OPTIONS in container["args"]
    assert (
        found["ConfigMap"]["data"]["options.yaml"] == "webhookConfigOwnerNamespace: extension-x\n"
    )
    assert name_of(found["Deployment"]) == component
    of_kind = {obj["kind"]: obj for obj in rights}
    assert all(
        maps_at(obj, "subjects") == [{"kind": "ServiceAccount", **account}]
        for kind, obj in of_kind.items()
        if kind.endswith("Binding")
    )
    profiles = {
        ("core.gardener.cloud", resource, verb, "")
        for resource in ("cloudprofiles", "namespacedcloudprofiles")
        for verb in ("get", "list", "watch")
    }
    owners = {("", "namespaces", "get", "extension-x"), *owner(of_kind["ClusterRole"])}
    credentials = {
        ("", "secrets", "get", ""),
        ("core.gardener.cloud", "internalsecrets", "get", ""),
        ("security.gardener.cloud", "workloadidentities", "get", ""),
    }
    assert granted(of_kind["ClusterRole"]["rules"]) == (
        granted(cluster_rules(component))
        | profiles
        | owners
        | (credentials if reference == "aws" else set())
    )
    alone = render(ROOT / "charts" / "extension-admission-runtime", values)
    [options] = [obj for obj in alone if obj["kind"] == "ConfigMap"]
    assert options["data"]["options.yaml"] == (
        f"webhookConfigOwnerClusterRole: {name_of(of_kind['ClusterRole'])}\n"
    )
    leases = {
        ("coordination.k8s.io", "leases", verb, "")
        for verb in ("get", "watch", "create", "patch", "update")
    }
    assert granted(of_kind["Role"]["rules"]) == granted(namespace_rules(component)) | leases


def test_the_admission_charts_accept_the_same_values() -> None:
    """The operator gives both the `values` of the Extension."""
    schemas = [
        orjson.loads((ROOT / "charts" / chart / "values.schema.json").read_bytes())
        for chart in ("extension-admission-runtime", "extension-admission-virtual")
    ]

    runtime, virtual = (set(schema["properties"]) for schema in schemas)
    assert runtime == virtual


def test_the_example_for_aws_registers_the_kinds_of_its_actuators_beside_the_original() -> None:
    example = read(ROOT / "examples" / "extensions" / "pergola-aws.yaml")
    registered = {(each["kind"], each["type"]) for each in maps_at(example, "spec", "resources")}

    served = {(actuator.kind, actuator.type) for actuator in load_actuators(["aws"])}
    assert registered == served - OPTIONAL
    assert len(registered) == len(maps_at(example, "spec", "resources"))
    # Under the original's name, it would replace the original, which serves the other kinds.
    assert name_of(example) != "provider-aws"


@pytest.mark.parametrize(
    ("kind", "controllers"),
    [
        ("ControlPlane", ["controlplane", "controlplane-healthcheck", HIBERNATION]),
        ("Worker", ["worker", "worker-healthcheck", UPDATES]),
    ],
)
def test_the_aws_chart_leaves_a_kind_to_the_original_unless_it_is_enabled(
    kind: str, controllers: list[str]
) -> None:
    def chart(*enabled: str) -> list[JsonObject]:
        values: JsonObject = {value: {"enabled": True} for value in enabled}
        folder = ROOT / "charts" / "extension-aws"
        return render(folder, with_image(values), namespace="extension")

    def disabled(objects: list[JsonObject]) -> set[str]:
        [workload] = [obj for obj in objects if obj["kind"] == "Deployment"]
        [container] = map_at(workload, "spec", "template", "spec")["containers"]
        prefix = "--disable-controllers="
        given = [arg.removeprefix(prefix) for arg in container["args"] if arg.startswith(prefix)]
        return set(",".join(given).split(",")) - {""}

    def rules(objects: list[JsonObject]) -> set[tuple[str, str, str, str]]:
        roles = [obj for obj in objects if obj["kind"] == "ClusterRole"]
        [found] = [granted(maps_at(role, "rules")) for role in roles]
        return found

    [actuator] = [each for each in load_actuators(["aws"]) if each.kind == kind]
    [name] = controller_names([actuator])
    without, served = chart(), chart(SWITCHES[kind])

    assert controllers[0] == name
    assert disabled(without) - disabled(served) == set(controllers)
    assert disabled(chart(*SWITCHES.values())) == set()
    assert rules(without) < rules(served)
    assert granted(list(actuator.rules)) <= rules(served)
