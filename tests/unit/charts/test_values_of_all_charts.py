"""What the charts share: generated files, and the effect of the values that all of them have."""

import json
from typing import Any, Final

import pytest

from pergola import __version__
from pergola.api.known.kubernetes_versions import SUPPORTED
from pergola.api.objects import JsonObject, labels_of, map_at, maps_at, name_of, namespace_of
from pergola.kube.yaml import parse
from tests.support.charts import ALL_CHARTS, IMAGE, OPERATOR, RESOURCE_MANAGER, ChartCase
from tools.charts import CHARTS, NAMES, comments, files

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

WITH_PODS: Final = [chart for chart in ALL_CHARTS if chart.has_pods]
DEPLOYS_IMAGES: Final = ("operator", "networking-calico", "networking-cilium", "extension-aws")
DIGEST: Final = f"sha256:{'a' * 64}"
SELECTORS: Final = {
    "operator": {"app": "gardener", "role": "operator"},
    "resource-manager": {"app": "gardener-resource-manager"},
    "networking-calico": {"app.kubernetes.io/name": "networking-calico"},
    "networking-cilium": {"app.kubernetes.io/name": "networking-cilium"},
    "extension-aws": {"app.kubernetes.io/name": "provider-aws"},
    "extension-admission-runtime": {"app.kubernetes.io/name": "admission-aws"},
    "dashboard": {"app.kubernetes.io/name": "pergola-dashboard"},
    "infra-manager": {"app.kubernetes.io/name": "pergola-infra-manager"},
}
"""They are immutable: a release with others could not be upgraded."""


def by_name(chart: ChartCase) -> str:
    return chart.name


def of(kind: str, objects: list[JsonObject]) -> list[JsonObject]:
    return [obj for obj in objects if obj["kind"] == kind]


def pod(chart: ChartCase, values: JsonObject | None = None) -> dict[str, Any]:
    """Return the template of the pods."""
    [workload] = of("Deployment", chart.rendered(values))
    return map_at(workload, "spec", "template")


def container(chart: ChartCase, values: JsonObject | None = None) -> dict[str, Any]:
    [found] = maps_at(pod(chart, values), "spec", "containers")
    return found


@pytest.mark.parametrize("chart", NAMES)
def test_generated_files_are_up_to_date(chart: str) -> None:
    stale = [path for path, text in files(chart).items() if path.read_text() != text]

    assert stale == [], "run python -m tools.charts"


def test_a_comment_describes_the_value_below_it() -> None:
    text = "# a\n# b\none:\n  two: 1 # no\n  # c\n  three:\n  - x: 1\n\n# lost\n\nfour: {}\n"

    found = {path: comment for path, comment in comments(text).items() if comment}

    assert found == {"one": "a b", "one.three": "c"}


@pytest.mark.parametrize("chart", NAMES)
def test_a_chart_describes_itself(chart: str) -> None:
    found = parse((CHARTS / chart / "Chart.yaml").read_text())
    assert isinstance(found, dict)

    assert found["kubeVersion"] == f">= {SUPPORTED[0]}.0-0"
    assert str(found["icon"]).startswith("data:image/svg+xml;base64,")
    assert found["home"]
    assert found["sources"]


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_selectors_do_not_change(chart: ChartCase) -> None:
    [workload] = of("Deployment", chart.rendered())

    assert workload["spec"]["selector"] == {"matchLabels": SELECTORS[chart.name]}


@pytest.mark.parametrize("chart", ALL_CHARTS, ids=by_name)
def test_objects_have_the_recommended_labels(chart: ChartCase) -> None:
    described = parse((chart.folder / "Chart.yaml").read_text())
    assert isinstance(described, dict)
    desired = {
        "app.kubernetes.io/instance": "gardener-operator",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/part-of": "pergola",
        "app.kubernetes.io/version": __version__,
        "helm.sh/chart": f"{described['name']}-{__version__}",
    }

    for obj in chart.rendered():
        if obj["kind"] != "CustomResourceDefinition":
            assert labels_of(obj).items() >= desired.items(), name_of(obj)
            assert labels_of(obj)["app.kubernetes.io/name"]


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
@pytest.mark.parametrize(
    ("image", "registry", "reference"),
    [
        ({}, "", f"{IMAGE}:{__version__}"),
        ({"repository": "a.example:5000/b", "tag": "v1"}, "", "a.example:5000/b:v1"),
        ({"tag": "sha256:0123"}, "", f"{IMAGE}@sha256:0123"),
        ({"tag": "v1", "digest": DIGEST}, "", f"{IMAGE}@{DIGEST}"),
        ({}, "copies.example/of/", f"copies.example/of/{IMAGE}:{__version__}"),
    ],
)
def test_the_image_and_its_registry(
    chart: ChartCase, image: JsonObject, registry: str, reference: str
) -> None:
    found = container(chart, {"image": image, "imageRegistry": registry})

    assert found["image"] == reference
    variables = {each["name"]: each.get("value") for each in found.get("env", [])}
    deployed = registry if chart.name in DEPLOYS_IMAGES and registry else None
    assert variables.get("PERGOLA_IMAGE_REGISTRY") == deployed
    assert variables.get("PERGOLA_IMAGE") == (reference if chart is OPERATOR else None)


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_values_of_pods(chart: ChartCase) -> None:
    fields: JsonObject = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "system"},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "high",
    }
    toleration = {"key": "dedicated", "operator": "Exists"}
    zones = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    own = {**zones, "labelSelector": {"matchLabels": {"a": "b"}}}
    values = {
        **fields,
        "tolerations": [toleration],
        "topologySpreadConstraints": [zones, own],
        "podAnnotations": {"note": "a"},
        "podLabels": {"team": "a", **dict.fromkeys(SELECTORS[chart.name], "other")},
    }

    found = pod(chart, values)

    assert {name: found["spec"][name] for name in fields} == fields
    assert toleration in found["spec"]["tolerations"]
    selector = {"matchLabels": SELECTORS[chart.name]}
    constraints = found["spec"]["topologySpreadConstraints"]
    assert constraints == [{**zones, "labelSelector": selector}, own]
    assert found["metadata"]["annotations"]["note"] == "a"
    labels = found["metadata"]["labels"]
    assert labels["team"] == "a"
    assert {name: labels[name] for name in SELECTORS[chart.name]} == SELECTORS[chart.name]


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_values_of_containers(chart: ChartCase) -> None:
    default = container(chart)
    source = {"secretRef": {"name": "settings"}}

    found = container(
        chart,
        {
            "image": {"pullPolicy": "Always"},
            "extraArgs": ["--log-level=debug", "--x=1"],
            "envFrom": [source],
            "resources": {"requests": {"cpu": 2}, "limits": None},
        },
    )

    assert found["args"] == [*default["args"], "--log-level=debug", "--x=1"]
    assert found["imagePullPolicy"] == "Always"
    assert found["envFrom"] == [source]
    requests = default["resources"]["requests"]
    assert found["resources"] == {"requests": {**requests, "cpu": 2}}
    assert "cpu" not in default["resources"]["limits"]


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_values_without_anything_are_those_of_the_cluster(chart: ChartCase) -> None:
    nothing: JsonObject = dict.fromkeys(
        ("tolerations", "topologySpreadConstraints", "podLabels", "env", "affinity", "extraArgs")
    )

    found = pod(chart, {**nothing, "priorityClassName": ""})

    assert "topologySpreadConstraints" not in found["spec"]
    assert "priorityClassName" not in found["spec"]


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_accounts_have_annotations_and_budgets_can_be_left_out(chart: ChartCase) -> None:
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}

    found = chart.rendered({"serviceAccount": {"annotations": role}})
    without = chart.rendered({"podDisruptionBudget": {"enabled": False}})
    half = chart.rendered({"podDisruptionBudget": {"maxUnavailable": "50%"}})

    [account] = of("ServiceAccount", found)
    assert account["metadata"]["annotations"] == role
    assert of("PodDisruptionBudget", without) == []
    [budget] = of("PodDisruptionBudget", half)
    assert budget["spec"]["maxUnavailable"] == "50%"


@pytest.mark.parametrize("chart", [OPERATOR, RESOURCE_MANAGER], ids=by_name)
def test_definitions_are_kept_unless_the_values_say_otherwise(chart: ChartCase) -> None:
    keep = {"helm.sh/resource-policy": "keep"}

    kept = of("CustomResourceDefinition", chart.rendered())
    released = of("CustomResourceDefinition", chart.rendered({"crds": {"keep": False}}))

    assert kept
    assert all(map_at(each, "metadata", "annotations") == keep for each in kept)
    assert [name_of(each) for each in released] == [name_of(each) for each in kept]
    assert not any(map_at(each, "metadata", "annotations") for each in released)
    assert of("CustomResourceDefinition", chart.rendered({"crds": {"enabled": False}})) == []


@pytest.mark.parametrize("chart", NAMES)
def test_no_schema_has_a_value_without_a_default(chart: str) -> None:
    schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
    values = parse((CHARTS / chart / "values.yaml").read_text())
    assert isinstance(values, dict)

    for name, each in schema["properties"].items():
        is_of_another_chart = each.keys() == {"description"}
        assert name in values or name == "global" or is_of_another_chart, name


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_alerts_link_to_the_documentation_that_the_values_name(chart: ChartCase) -> None:
    address = "https://wiki.example/pergola"
    values = {"prometheusRule": {"enabled": True, "documentation": f"{address}/"}}
    for obj in chart.rendered(values):
        if obj["kind"] == "PrometheusRule":
            urls = [
                rule["annotations"]["runbook_url"]
                for group in obj["spec"]["groups"]
                for rule in group["rules"]
            ]
            assert urls
            assert all(url.startswith(f"{address}/how-to/") for url in urls)


@pytest.mark.parametrize("name", ["networking-calico", "networking-cilium", "extension-aws"])
def test_an_extension_of_a_garden_shares_no_object_with_that_of_its_seed(name: str) -> None:
    """A Seed may be the cluster of the Garden: what one of both removes must not be the other's."""
    is_gardens: JsonObject = {"gardener": {"runtimeCluster": {"enabled": "true"}}}
    instances = (
        ChartCase(name, "runtime-extension-one").rendered(is_gardens),
        ChartCase(name, "extension-one").rendered(),
    )
    garden, seed = (
        {(obj["kind"], namespace_of(obj), name_of(obj)) for obj in objects} for objects in instances
    )

    assert garden
    assert garden.isdisjoint(seed)
