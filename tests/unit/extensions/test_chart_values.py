"""Properties of all charts: a schema, defaults, notes, and safe pods, whatever the values."""

import itertools
import json
from collections.abc import Iterator
from typing import Final

import pytest

from pergola import __version__
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of, namespace_of
from pergola.kube.yaml import parse
from pergola.sandbox.helm import HelmError
from pergola.shipped import CHARTS
from tests.support.charts import ALL_CHARTS, OPERATOR, RESOURCE_MANAGER, ChartCase

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

WITH_PODS: Final = [chart for chart in ALL_CHARTS if chart.has_pods]
SWITCHED: Final = [chart for chart in WITH_PODS if chart is not OPERATOR]
PORTS: Final = [30001, 30002, 30003, 30004, 30005]
OF_GARDENLET: Final[JsonObject] = {
    "gardener": {
        "version": "v1.150.0",
        "garden": {"clusterIdentity": "one", "genericKubeconfigSecretName": "generic"},
        "gardenlet": {"featureGates": {"DefaultSeccompProfile": True}},
        "seed": {
            "name": "local",
            "clusterIdentity": "local",
            "annotations": None,
            "labels": {"name.seed.gardener.cloud/local": "true"},
            "provider": "aws",
            "region": "eu-west-1",
            "volumeProvider": "",
            "volumeProviders": None,
            "protected": False,
            "visible": True,
            "taints": None,
            "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16"},
            "blockCIDRs": None,
            "spec": {"provider": {"type": "aws"}, "settings": {"scheduling": {"visible": True}}},
            "ingressDomain": "ingress.example.org",
        },
        "selfHostedShootCluster": True,
        "shoot": {"name": "root", "namespace": "garden", "spec": {}},
    },
    "usablePorts": PORTS,
}
"""All values that gardenlet v1.150.0 adds to those of a ControllerDeployment."""
SWITCHES: Final[tuple[tuple[JsonObject, ...], ...]] = (
    (
        {},
        {"networkPolicy": {"enabled": True}},
        {"networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]}},
    ),
    ({}, {"serviceMonitor": {"enabled": True, "labels": {"prometheus": "main"}}, "replicas": 1}),
    ({}, {"gardener": {"runtimeCluster": {"enabled": "true", "priorityClassName": "high"}}}),
)
"""Parts of values; the matrix has one of each line. Gardener sets the last one."""


def by_name(chart: ChartCase) -> str:
    return chart.name


def matrix(chart: ChartCase) -> Iterator[JsonObject]:
    for parts in itertools.product(*(SWITCHES if chart.of_gardener else SWITCHES[:-1])):
        values: JsonObject = {}
        for part in parts:
            values |= part
        yield values


def of(kind: str, objects: list[JsonObject]) -> list[JsonObject]:
    return [obj for obj in objects if obj["kind"] == kind]


def differences(schema: JsonObject, values: object, path: str = "") -> Iterator[str]:
    """Yield each value that is missing in the schema or in the defaults, or has no description.

    What has fields is described by them. A schema accepts the values of another chart without a
    type; they are not used.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not isinstance(values, dict):
        if "description" not in schema:
            yield f"{path} has no description"
        return
    untyped = {name for name in properties if map_at(properties, name).keys() == {"description"}}
    for name in (properties.keys() ^ values.keys()) - {"global"} - untyped:
        yield f"{path}.{name} is in one of schema and defaults only"
    for name in properties.keys() & values.keys():
        yield from differences(map_at(properties, name), values[name], f"{path}.{name}")


def test_the_table_has_every_chart() -> None:
    assert {chart.name for chart in ALL_CHARTS} == {
        path.parent.name for path in CHARTS.glob("*/Chart.yaml")
    }


@pytest.mark.parametrize("chart", ALL_CHARTS, ids=by_name)
def test_a_chart_has_the_version_of_pergola_and_runs_its_image(chart: ChartCase) -> None:
    described = parse((chart.folder / "Chart.yaml").read_text())
    assert isinstance(described, dict)
    assert (described["version"], described["appVersion"]) == (__version__, __version__)

    for workload in of("Deployment", chart.rendered()):
        for container in maps_at(workload, "spec", "template", "spec", "containers"):
            assert container["image"] == f"registry.example/pergola:{__version__}"


@pytest.mark.parametrize("chart", ALL_CHARTS, ids=by_name)
def test_helm_lint_has_no_findings(chart: ChartCase) -> None:
    assert "WARNING" not in chart.linted()


@pytest.mark.parametrize("chart", ALL_CHARTS, ids=by_name)
def test_a_chart_has_notes_and_one_schema_for_all_its_values(chart: ChartCase) -> None:
    schema = json.loads((chart.folder / "values.schema.json").read_text())
    values = parse((chart.folder / "values.yaml").read_text())

    assert schema["additionalProperties"] is False
    assert (chart.folder / "templates" / "NOTES.txt").is_file()
    if chart not in (OPERATOR, RESOURCE_MANAGER):  # these have a configuration and separate tests
        assert list(differences(schema, values)) == []


@pytest.mark.parametrize("chart", SWITCHED, ids=by_name)
@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ({"replica": 2}, "additional properties 'replica' not allowed"),
        ({"replicas": "2"}, "at '/replicas': got string, want integer"),
        ({"image": {"registry": "a"}}, "additional properties 'registry' not allowed"),
        ({"image": {"repository": ""}}, "image.repository is not set: name an image"),
        ({"image": {"digest": "sha256:1"}}, "at '/image/digest'"),
        ({"image": {"pullPolicy": "Often"}}, "at '/image/pullPolicy'"),
        ({"imageRegistry": "https://a"}, "at '/imageRegistry'"),
        ({"imagePullSecrets": ["a"]}, "at '/imagePullSecrets/0': got string, want object"),
        ({"podLabels": {"a": 1}}, "at '/podLabels/a': got number, want string"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "missing properties 'topologyKey'"),
        ({"podDisruptionBudget": {"maxUnavailable": "one"}}, "at '/podDisruptionBudget"),
        ({"serviceAccount": {"name": "a"}}, "additional properties 'name' not allowed"),
        ({"resources": {"limit": {}}}, "additional properties 'limit' not allowed"),
        ({"networkPolicy": {"enabled": "yes"}}, "at '/networkPolicy/enabled'"),
        ({"serviceMonitor": {"interval": "often"}}, "at '/serviceMonitor/interval'"),
    ],
    ids=str,
)
def test_invalid_values_are_refused_with_their_path(
    chart: ChartCase, values: JsonObject, finding: str
) -> None:
    with pytest.raises(HelmError) as refused:
        chart.rendered(values)

    assert finding in str(refused.value)


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_null_drops_a_default_or_is_refused_with_the_name_of_the_value(chart: ChartCase) -> None:
    values = parse((chart.folder / "values.yaml").read_text())
    assert isinstance(values, dict)

    for name in values.keys() - {"image"}:
        try:
            chart.rendered({name: None})
        except HelmError as error:
            assert f"missing property '{name}'" in str(error), name  # noqa: PT017


@pytest.mark.parametrize("chart", SWITCHED, ids=by_name)
def test_a_chart_is_valid_with_each_combination_of_values(chart: ChartCase) -> None:
    for values in matrix(chart):
        found = chart.rendered(values)

        places = {(obj["kind"], obj["metadata"].get("namespace"), name_of(obj)) for obj in found}
        assert len(places) == len(found), values
        monitored = map_at(values, "serviceMonitor").get("enabled", False)
        isolated = map_at(values, "networkPolicy").get("enabled", False)
        assert len(of("ServiceMonitor", found)) == monitored, values
        assert len(of("NetworkPolicy", found)) == isolated, values
        check_selectors(found)


def check_selectors(objects: list[JsonObject]) -> None:
    """Check that everything that selects pods selects those of the Deployment."""
    [workload] = of("Deployment", objects)
    template = map_at(workload, "spec", "template")
    labels = map_at(template, "metadata", "labels")
    [container] = maps_at(template, "spec", "containers")
    ports = {port["name"] for port in maps_at(container, "ports")}
    for service in of("Service", objects):
        assert map_at(service, "spec", "selector").items() <= labels.items()
        assert {port["targetPort"] for port in maps_at(service, "spec", "ports")} <= ports
    for policy in of("NetworkPolicy", objects):
        assert map_at(policy, "spec", "podSelector", "matchLabels").items() <= labels.items()
        for rule in maps_at(policy, "spec", "ingress"):
            assert {port["port"] for port in maps_at(rule, "ports")} <= ports
    for monitor in of("ServiceMonitor", objects):
        desired = map_at(monitor, "spec", "selector", "matchLabels")
        [service] = [
            each
            for each in of("Service", objects)
            if desired.items() <= map_at(each, "metadata", "labels").items()
        ]
        names = {port["name"] for port in maps_at(service, "spec", "ports")}
        assert {each["port"] for each in maps_at(monitor, "spec", "endpoints")} <= names


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_pods_have_no_privileges_and_a_disruption_budget(chart: ChartCase) -> None:
    found = chart.rendered()

    [workload] = of("Deployment", found)
    pod = map_at(workload, "spec", "template", "spec")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in maps_at(pod, "containers"):
        context = map_at(container, "securityContext")
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
    [budget] = of("PodDisruptionBudget", found)
    selector = map_at(budget, "spec", "selector", "matchLabels")
    assert selector == map_at(workload, "spec", "selector", "matchLabels")


@pytest.mark.parametrize("chart", WITH_PODS, ids=by_name)
def test_environment_variables_from_values_are_added(chart: ChartCase) -> None:
    endpoint = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}

    def variables(values: JsonObject) -> list[JsonObject]:
        [workload] = of("Deployment", chart.rendered(values))
        [container] = maps_at(workload, "spec", "template", "spec", "containers")
        return list(maps_at(container, "env"))

    assert variables({"env": [endpoint]}) == [*variables({}), endpoint]


def test_the_infra_manager_may_read_secrets_only_in_chosen_namespaces() -> None:
    [chart] = [each for each in ALL_CHARTS if each.name == "infra-manager"]
    values: JsonObject = {
        "secretNamespaces": ["a", "b"],
        "awsCredentials": "a/keys",
        "awsNamespaces": ["a", "b"],
    }

    default, found = chart.rendered(), chart.rendered(values)

    def bound(objects: list[JsonObject]) -> set[tuple[str, str]]:
        return {
            (map_at(each, "roleRef")["name"], each["metadata"].get("namespace", ""))
            for kind in ("ClusterRoleBinding", "RoleBinding")
            for each in of(kind, objects)
        }

    leases = ("pergola:infra-manager:leases", "pergola-system")
    definitions = ("pergola:infra-manager:definitions", "")
    assert bound(default) == {("pergola:infra-manager", ""), definitions, leases}
    assert bound(found) - bound(default) == {
        ("pergola:infra-manager:secrets", namespace) for namespace in ("a", "b")
    }
    roles = {name_of(each) for each in of("ClusterRole", found)}
    assert {role for role, _ in bound(found)} == roles
    [workload] = of("Deployment", found)
    [container] = map_at(workload, "spec", "template", "spec")["containers"]
    assert "--aws-credentials=a/keys" in container["args"]
    assert "--aws-namespaces=a,b" in container["args"]
    assert "--lease-namespace=pergola-system" in container["args"]


def test_the_infra_manager_may_patch_only_its_kinds() -> None:
    [chart] = [each for each in ALL_CHARTS if each.name == "infra-manager"]
    kinds = ["NewCluster.a.example", "Proxy.b.example", "Dns.b.example"]

    [role] = [
        each
        for each in of("ClusterRole", chart.rendered({"kinds": kinds}))
        if name_of(each) == "pergola:infra-manager"
    ]

    patched = [rule for rule in role["rules"] if "patch" in rule["verbs"]]
    assert [(rule["apiGroups"], rule["resources"]) for rule in patched[:-1]] == [
        (["a.example"], ["newclusters", "newclusters/status"]),
        (["b.example"], ["proxies", "proxies/status"]),
        (["b.example"], ["dnses", "dnses/status"]),
    ]
    assert patched[-1]["resources"] == ["events"]


def test_each_namespace_may_have_an_infra_manager_that_sees_nothing_else() -> None:
    def installed(namespace: str) -> list[JsonObject]:
        chart = ChartCase("infra-manager", f"system-of-{namespace}", of_gardener=False)
        webhook = {"enabled": True, "certificateSecret": "tls"}
        return chart.rendered({"watchNamespace": namespace, "webhook": webhook})

    found = {namespace: installed(namespace) for namespace in ("team-a", "team-b")}

    cluster_wide = [
        {(obj["kind"], name_of(obj)) for obj in objects if "namespace" not in obj["metadata"]}
        for objects in found.values()
    ]
    assert cluster_wide[0].isdisjoint(cluster_wide[1])
    for namespace, objects in found.items():
        rules = {name_of(each): each["rules"] for each in of("ClusterRole", objects)}
        [everywhere] = [map_at(each, "roleRef") for each in of("ClusterRoleBinding", objects)]
        assert [rule["resources"] for rule in rules[everywhere["name"]]] == [
            ["customresourcedefinitions"]
        ]
        bound = [each for each in of("RoleBinding", objects) if namespace_of(each) == namespace]
        assert len(bound) == 1
        assert rules[map_at(bound[0], "roleRef")["name"]][0]["resources"][0] == "awsclusters"
        [registration] = of("ValidatingWebhookConfiguration", objects)
        [entry] = maps_at(registration, "webhooks")
        assert map_at(entry, "namespaceSelector", "matchLabels") == {
            "kubernetes.io/metadata.name": namespace
        }


def test_the_infra_manager_serves_and_registers_its_webhook() -> None:
    [chart] = [each for each in ALL_CHARTS if each.name == "infra-manager"]
    webhook: JsonObject = {"enabled": True}
    kinds = ["NewCluster.a.example", "Proxy.b.example"]

    with pytest.raises(HelmError, match=r"requires webhook\.certificateSecret"):
        chart.rendered({"webhook": webhook})
    webhook |= {"certificateSecret": "tls", "annotations": {"a": "b"}}
    values = {"webhook": webhook, "networkPolicy": {"enabled": True}, "kinds": kinds}
    found = chart.rendered(values)

    check_selectors(found)
    [registration] = of("ValidatingWebhookConfiguration", found)
    [entry] = maps_at(registration, "webhooks")
    assert [(each["apiGroups"], each["resources"]) for each in maps_at(entry, "rules")] == [
        (["a.example"], ["newclusters"]),
        (["b.example"], ["proxies"]),
    ]
    [service] = of("Service", found)
    called = map_at(entry, "clientConfig", "service")
    assert (called["namespace"], called["name"]) == Key.of(service)
    [port] = maps_at(service, "spec", "ports")
    assert called["port"] == port["port"]
    assert registration["metadata"]["annotations"] == {"a": "b"}
    [workload] = of("Deployment", found)
    pod = map_at(workload, "spec", "template", "spec")
    [container] = maps_at(pod, "containers")
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert f"--webhook-port={ports['webhooks']}" in container["args"]
    [tls] = [each for each in container["volumeMounts"] if each["name"] == "tls"]
    assert f"--webhook-cert-dir={tls['mountPath']}" in container["args"]
    [policy] = of("NetworkPolicy", found)
    assert [rule["ports"][0]["port"] for rule in maps_at(policy, "spec", "ingress")] == ["webhooks"]


@pytest.mark.parametrize("name", ["networking-calico", "networking-cilium", "extension-aws"])
def test_an_extension_uses_the_ports_that_gardenlet_chooses(name: str) -> None:
    [chart] = [each for each in ALL_CHARTS if each.name == name]
    switched = {"controlPlanes": {"enabled": True}} if name == "extension-aws" else {}

    found = chart.rendered({**OF_GARDENLET, **switched})

    [workload] = of("Deployment", found)
    [container] = map_at(workload, "spec", "template", "spec")["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    chosen = {"metrics": PORTS[0], "webhooks": PORTS[1], "health": PORTS[2]}
    assert ports == {name: chosen[name] for name in ports}
    assert f"--metrics-bind-address=:{PORTS[0]}" in container["args"]
    assert f"--health-bind-address=:{PORTS[2]}" in container["args"]
    if "webhooks" in ports:
        assert f"--webhook-config-server-port={PORTS[1]}" in container["args"]


@pytest.mark.parametrize(
    ("provider", "grows", "is_served"),
    [("aws", True, True), ("aws", False, False), ("gcp", True, False), ("", False, False)],
)
def test_volumes_are_adapted_only_in_seeds_on_aws_that_grow_them(
    *, provider: str, grows: bool, is_served: bool
) -> None:
    [chart] = [each for each in ALL_CHARTS if each.name == "extension-aws"]
    settings = {"persistentVolumeClaimAutoscaler": {"enabled": True}} if grows else {}
    seed = {"provider": provider, "spec": {"settings": settings}}
    values: JsonObject = {"controlPlanes": {"enabled": True}}
    if provider:
        values["gardener"] = {"seed": seed}

    [workload] = of("Deployment", chart.rendered(values))

    [container] = map_at(workload, "spec", "template", "spec")["containers"]
    assert ("--disable-webhooks=seed-pvca" not in container["args"]) is is_served


def test_an_extension_needs_a_name() -> None:
    for chart in SWITCHED:
        if chart.of_gardener:
            with pytest.raises(HelmError, match="at '/extension'"):
                chart.rendered({"extension": ""})
