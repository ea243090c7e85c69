"""The values of the resource manager's chart, and the effect of each (spec 10 §13.2)."""

import base64
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.api.resource_manager_config import ResourceManagerConfiguration, configuration_from
from pergola.api.schema.structural import schema_of
from pergola.kube.yaml import parse, parse_documents
from pergola.resource_manager.configuration import options
from pergola.resource_manager.serving import configuration_name
from pergola.resource_manager.webhooks.installation import Installation
from pergola.sandbox.helm import HelmError
from tests.support.chart_schema import strict
from tests.support.charts import RESOURCE_MANAGER
from tools.charts import table

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

CHART: Final = RESOURCE_MANAGER.folder
SCHEMA: Final = CHART / "values.schema.json"
PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "resource-manager-chart.md"
BEGIN: Final = (
    "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/resource_manager -->\n"
)
END: Final = "<!-- end -->\n"
CONFIG: Final = "The configuration file: [fields](configuration.md)."
NAME: Final = "gardener-resource-manager"
KUBECONFIG: Final = "apiVersion: v1\nkind: Config\n"
TWO_CLUSTERS: Final[JsonObject] = {"targetClientConnection": {"kubeconfig": KUBECONFIG}}


def schema_of_config() -> JsonObject:
    """Return the schema of the value `config`."""
    schema: dict[str, Any] = strict(schema_of(ResourceManagerConfiguration))
    properties = schema["properties"]
    properties["kind"]["enum"] = ["ResourceManagerConfiguration"]
    properties["apiVersion"]["enum"] = ["resourcemanager.config.gardener.cloud/v1alpha1"]
    server = properties["server"]["properties"]
    for endpoint in server.values():  # a pod needs to know its ports
        endpoint["properties"]["port"] |= {"minimum": 1}
    # The chart decides these: the names of its objects, and where it mounts files.
    del server["webhooks"]["properties"]["selfSigned"]["properties"]["prefix"]
    del server["webhooks"]["properties"]["tls"]["properties"]["serverCertDir"]
    for connection in ("sourceClientConnection", "targetClientConnection"):
        properties[connection]["properties"]["kubeconfig"] |= {
            "description": "The content of a kubeconfig; empty for the pod's ServiceAccount.",
            "pattern": "^$|apiVersion",
        }
    return schema


def rendered(**config: object) -> list[JsonObject]:
    return RESOURCE_MANAGER.rendered({"config": config})


def of(kind: str, objects: list[JsonObject]) -> list[JsonObject]:
    return [obj for obj in objects if obj["kind"] == kind]


def file(objects: list[JsonObject]) -> ResourceManagerConfiguration:
    """Return the configuration that the process reads; it must cause no warning."""
    [config_map] = of("ConfigMap", objects)
    config, warnings = configuration_from(parse(config_map["data"]["config.yaml"]))
    assert warnings == []
    return config


def bindings(objects: list[JsonObject]) -> set[tuple[str, str]]:
    """Return the role and the namespace of each binding."""
    return {
        (map_at(obj, "roleRef")["name"], map_at(obj, "metadata").get("namespace", ""))
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for obj in of(kind, objects)
    }


def test_the_schema_of_the_configuration_is_that_of_the_type() -> None:
    written = json.loads(SCHEMA.read_text())
    desired = {**written, "properties": {**written["properties"], "config": schema_of_config()}}
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        SCHEMA.write_text(json.dumps(desired, indent=2, ensure_ascii=False) + "\n")
        return
    assert written == desired, "update it: see the comment in the page of the chart"


def test_each_value_has_a_default_and_a_description() -> None:
    values = parse((CHART / "values.yaml").read_text())
    properties = json.loads(SCHEMA.read_text())["properties"]

    assert isinstance(values, dict)
    assert properties.keys() - {"global"} == values.keys()
    undescribed = [name for name, each in properties.items() if not each.get("description")]
    assert [name for name in undescribed if "properties" not in properties[name]] == []


def test_the_page_of_the_chart_has_every_value() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    written, _, after = rest.partition(END)
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}{table('resource-manager', CONFIG)}{END}{after}")
        return
    assert written == table("resource-manager", CONFIG)


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ({"config": {"logLevels": "info"}}, "additional properties 'logLevels' not allowed"),
        ({"config": {"controllers": {"secrets": {}}}}, "properties 'secrets' not allowed"),
        ({"config": {"server": {"metrics": {"port": 0}}}}, "at '/config/server/metrics/port'"),
        (
            {"config": {"targetClientConnection": {"kubeconfig": "/etc/kubeconfig"}}},
            "at '/config/targetClientConnection/kubeconfig'",
        ),
        (
            {"config": {"server": {"webhooks": {"selfSigned": {"namespace": "other"}}}}},
            "the Service is in garden: leave it out",
        ),
        (
            {"config": {"leaderElection": {"leaderElect": False}}},
            "replicas above 1 require config.leaderElection.leaderElect",
        ),
    ],
    ids=str,
)
def test_invalid_configurations_are_refused(values: JsonObject, finding: str) -> None:
    with pytest.raises(HelmError) as refused:
        RESOURCE_MANAGER.rendered(values)

    assert finding in str(refused.value)


def test_the_configuration_is_valid_and_fits_namespace_and_ports() -> None:
    objects = RESOURCE_MANAGER.rendered()
    config = file(objects)

    assert config.leader_election.resource_name == NAME
    assert config.leader_election.resource_namespace == "garden"
    assert options(config).garbage is not None
    [deployment], [service] = of("Deployment", objects), of("Service", objects)
    [container] = maps_at(deployment, "spec", "template", "spec", "containers")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    server = config.server
    served = {"metrics": server.metrics.port, "health": server.health_probes.port}
    assert ports == {"webhooks": server.webhooks.port, **served}
    offered = maps_at(service, "spec", "ports")
    assert {port["name"]: port["port"] for port in offered} == {"webhooks": 443, **served}
    assert server.webhooks.self_signed.enabled
    assert Key(server.webhooks.self_signed.namespace, NAME) == Key.of(service)


def test_a_changed_configuration_changes_the_pods() -> None:
    def annotations(objects: list[JsonObject]) -> JsonObject:
        [deployment] = of("Deployment", objects)
        return dict(map_at(deployment, "spec", "template", "metadata", "annotations"))

    default = annotations(RESOURCE_MANAGER.rendered())
    assert annotations(RESOURCE_MANAGER.rendered()) == default
    assert annotations(rendered(logLevel="debug")) != default
    assert annotations(rendered(**TWO_CLUSTERS)).keys() > default.keys()


def test_the_objects_of_one_cluster_need_all_permissions() -> None:
    objects = RESOURCE_MANAGER.rendered()

    assert bindings(objects) == {(NAME, "")}
    [role] = of("ClusterRole", objects)
    assert {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]} in role["rules"]
    assert of("Role", objects) == []


def test_with_objects_in_another_cluster_only_the_source_is_permitted() -> None:
    objects = rendered(**TWO_CLUSTERS)

    assert bindings(objects) == {
        ("pergola:managed-resources:source", ""),
        (f"{NAME}-leader-election", "garden"),
    }
    assert {name_of(role) for role in of("ClusterRole", objects)} == {
        "pergola:managed-resources:source"
    }


def test_source_roles_are_bound_in_the_namespaces_that_are_read() -> None:
    objects = rendered(
        **TWO_CLUSTERS,
        sourceClientConnection={"namespaces": ["a", "b"], "namespace": "b"},
        controllers={
            "tokenRequestor": {"enabled": True},
            "csrApprover": {"enabled": True, "machineNamespace": "machines"},
        },
        webhooks={"nodeAgentAuthorizer": {"enabled": True}},
    )

    assert bindings(objects) == {
        *(
            (f"pergola:{role}:source", namespace)
            for role in ("managed-resources", "token-requestor")
            for namespace in ("a", "b")
        ),
        ("pergola:csr-approver:source", "machines"),
        (f"{NAME}-leader-election", "garden"),
    }
    roles = {name_of(role) for role in of("ClusterRole", objects)}
    assert roles == {name for name, _ in bindings(objects) if name.startswith("pergola:")}


def test_a_ring_grants_the_permissions_of_sharder_and_shards() -> None:
    objects = rendered(**TWO_CLUSTERS, sharding={"controllerRing": "grm"})

    assert file(objects).sharding.controller_ring == "grm"
    [made] = of("ControllerRing", objects)
    resource = {"group": "resources.gardener.cloud", "resource": "managedresources"}
    assert (name_of(made), made["spec"]) == ("grm", {"resources": [resource]})
    assert ("sharding:controllerring:grm", "") in bindings(objects)
    [role] = of("Role", objects)
    assert role["rules"][1] == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "watch", "update"],
    }


def test_a_ring_in_another_cluster_is_not_created() -> None:
    config = {"sourceClientConnection": {"kubeconfig": KUBECONFIG}}
    objects = rendered(**config, sharding={"controllerRing": "grm"})

    assert of("ControllerRing", objects) == []
    assert bindings(objects) == set()


def test_local_objects_of_remote_managed_resources_need_target_permissions() -> None:
    objects = rendered(
        sourceClientConnection={"kubeconfig": KUBECONFIG}, targetClientConnection={"qps": 5}
    )

    assert bindings(objects) == {(NAME, "")}


def test_with_both_clusters_remote_no_permissions_are_granted() -> None:
    assert bindings(rendered(sourceClientConnection={"kubeconfig": KUBECONFIG})) == set()


def test_the_content_of_kubeconfigs_is_mounted_from_a_secret() -> None:
    objects = rendered(**TWO_CLUSTERS)

    target = file(objects).target_client_connection
    assert target is not None
    [deployment], [secret] = of("Deployment", objects), of("Secret", objects)
    pod = map_at(deployment, "spec", "template", "spec")
    [volume] = [each for each in maps_at(pod, "volumes") if each["name"] == "kubeconfigs"]
    assert volume["secret"]["secretName"] == name_of(secret)
    [container] = maps_at(pod, "containers")
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "kubeconfigs"]
    key = Path(target.kubeconfig).relative_to(mount["mountPath"])
    assert base64.b64decode(secret["data"][str(key)]).decode() == KUBECONFIG


def test_certificates_from_a_secret_replace_self_signed_ones() -> None:
    objects = RESOURCE_MANAGER.rendered({"certificateSecret": "webhook-tls"})

    webhooks = file(objects).server.webhooks
    assert not webhooks.self_signed.enabled
    [deployment] = of("Deployment", objects)
    pod = map_at(deployment, "spec", "template", "spec")
    [volume] = [each for each in maps_at(pod, "volumes") if each["name"] == "tls"]
    assert volume["secret"]["secretName"] == "webhook-tls"
    [container] = maps_at(pod, "containers")
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "tls"]
    assert mount["mountPath"] == webhooks.tls.server_cert_dir


def test_a_role_of_the_release_owns_the_webhooks_in_the_same_cluster() -> None:
    objects = RESOURCE_MANAGER.rendered()

    role = file(objects).server.webhooks.self_signed.owner_cluster_role
    assert role in [name_of(each) for each in of("ClusterRole", objects)]
    elsewhere = file(rendered(**TWO_CLUSTERS))
    assert not elsewhere.server.webhooks.self_signed.owner_cluster_role


def test_a_process_that_registers_its_webhooks_may_change_no_others() -> None:
    documents = parse_documents((CHART / "rbac" / "webhooks.yaml").read_text())
    [role] = [
        each.value
        for each in documents
        if isinstance(each.value, dict) and name_of(each.value) == "pergola:webhooks:self-signed"
    ]

    names = {
        name
        for rule in maps_at(role, "rules")
        if {"patch", "delete"} & {*rule["verbs"]}
        for name in rule["resourceNames"]
    }
    assert names == {configuration_name(Installation(kind)) for kind in ("runtime", "target")}
