"""The fields of the live object that some kinds keep (spec 10 §5.3, B12)."""

from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeOptions,
    Scaled,
    for_creation,
    merge,
)
from pergola.resource_manager.controllers.managed_resource.services import kept_address

TRUE: Final = "true"


def deployment(
    replicas: int | None = None, annotations: dict[str, str] | None = None, **template: object
) -> JsonObject:
    spec: JsonObject = {"template": {"spec": {"containers": []}, **template}}
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = {"name": "a", "namespace": "ns", "annotations": annotations or {}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def merged(
    manifest: JsonObject,
    live: JsonObject,
    *,
    labels: dict[str, str] | None = None,
    scaled: Scaled = frozenset(),
    force_annotations: bool = False,
) -> JsonObject:
    options = MergeOptions(
        "ns/mr", labels or {}, force_annotations=force_annotations, scaled=scaled
    )
    return merge(manifest, live, previous=None, options=options)


def as_kind(obj: JsonObject, api_version: str, kind: str) -> JsonObject:
    return {**obj, "apiVersion": api_version, "kind": kind}


# Must hold: workloads


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "Deployment"), ("extensions/v1beta1", "Deployment"), ("apps/v1", "StatefulSet")],
)
@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (deployment(1), 1),
        (deployment(1, {marks.PRESERVE_REPLICAS: TRUE}), 5),
        (deployment(1, {marks.PRESERVE_REPLICAS: "True"}), 1),
        (deployment(1, {marks.PRESERVE_REPLICAS: "1"}), 1),
        (deployment(0, {marks.PRESERVE_REPLICAS: TRUE}), 5),
        (deployment(), 5),
    ],
)
def test_manually_scaled_replicas_are_kept_on_request(
    manifest: JsonObject, expected: int, api_version: str, kind: str
) -> None:
    live = as_kind(deployment(5), api_version, kind)

    assert merged(as_kind(manifest, api_version, kind), live)["spec"]["replicas"] == expected


def test_replicas_of_autoscaled_workloads_are_kept() -> None:
    scaled = frozenset({("apps", "Deployment", "ns", "a")})

    assert merged(deployment(1), deployment(5), scaled=scaled)["spec"]["replicas"] == 5
    other = frozenset({("apps", "Deployment", "ns", "b")})
    assert merged(deployment(1), deployment(5), scaled=other)["spec"]["replicas"] == 1


@pytest.mark.parametrize("mark", [marks.PRESERVE_REPLICAS, marks.PRESERVE_RESOURCES])
def test_an_annotation_on_only_the_live_object_preserves_nothing(mark: str) -> None:
    live = deployment(5, {mark: TRUE}, spec=pods("2"))
    manifest = deployment(1, spec=pods("1"))

    spec = merged(manifest, live)["spec"]

    assert spec["replicas"] == 1
    assert spec["template"]["spec"] == pods("1")


def pods(cpu: str, name: str = "c") -> JsonObject:
    return {"containers": [{"name": name, "resources": {"requests": {"cpu": cpu}}}]}


TEMPLATES: Final = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
]


@pytest.mark.parametrize(("api_version", "kind"), TEMPLATES)
@pytest.mark.parametrize(("value", "expected"), [("true", "2"), ("True", "1"), ("", "1")])
def test_changed_requests_are_kept_if_annotated(
    value: str, expected: str, api_version: str, kind: str
) -> None:
    manifest = deployment(annotations={marks.PRESERVE_RESOURCES: value}, spec=pods("1"))
    live = deployment(spec=pods("2"))

    found = merged(as_kind(manifest, api_version, kind), as_kind(live, api_version, kind))

    assert found["spec"]["template"]["spec"] == pods(expected)


def test_only_cpu_and_memory_of_containers_of_the_same_name_are_preserved() -> None:
    live = {
        "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "9"}}}],
        "containers": [
            {"name": "gone"},
            {"name": "b", "resources": {"limits": {"memory": "9Gi", "gpu": "9"}}},
            {"name": "a", "resources": {"requests": {"cpu": "9"}}},
        ],
    }
    desired = {
        "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "1"}}}],
        "containers": [
            {"name": "a", "image": "i", "resources": {"requests": {"memory": "1Gi", "gpu": "1"}}},
            {"name": "b"},
            {"name": "new"},
        ],
    }
    manifest = deployment(annotations={marks.PRESERVE_RESOURCES: TRUE}, spec=desired)

    spec = merged(manifest, deployment(spec=live))["spec"]["template"]["spec"]

    assert spec["initContainers"] == desired["initContainers"]
    assert spec["containers"] == [
        {
            "name": "a",
            "image": "i",
            "resources": {"requests": {"memory": "1Gi", "gpu": "1", "cpu": "9"}},
        },
        {"name": "b", "resources": {"limits": {"memory": "9Gi"}}},
        {"name": "new"},
    ]


@pytest.mark.parametrize(("api_version", "kind"), TEMPLATES)
def test_a_restart_by_kubectl_is_not_reverted(api_version: str, kind: str) -> None:
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    live = deployment(metadata={"annotations": {**restarted, "other": "x"}})
    manifest = deployment(metadata={"annotations": {"mine": "m"}})

    found = merged(as_kind(manifest, api_version, kind), as_kind(live, api_version, kind))

    assert found["spec"]["template"]["metadata"]["annotations"] == {"mine": "m", **restarted}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_cron_jobs_keep_the_same_fields_as_pod_templates(version: str) -> None:
    def cron_job(cpu: str, template: JsonObject) -> JsonObject:
        inner = {"spec": {"template": {**template, "spec": pods(cpu)}}}
        metadata = {"name": "a", "annotations": {marks.PRESERVE_RESOURCES: TRUE}}
        kind = {"apiVersion": f"batch/{version}", "kind": "CronJob"}
        return {**kind, "metadata": metadata, "spec": {"jobTemplate": inner}}

    restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "t"}}}

    found = merged(cron_job("1", {}), cron_job("2", restarted))

    assert found["spec"]["jobTemplate"]["spec"]["template"] == {**restarted, "spec": pods("2")}


def test_claim_templates_are_never_changed() -> None:
    live = as_kind(deployment(1), "apps/v1", "StatefulSet")
    manifest = as_kind(deployment(2), "apps/v1", "StatefulSet")
    live["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "old"}}]
    manifest["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "new"}}, {}]

    spec = merged(manifest, live, labels={"a": "b"})["spec"]

    assert spec["volumeClaimTemplates"] == [{"metadata": {"name": "old"}}]
    assert spec["replicas"] == 2


# Jobs


def job(labels: dict[str, str], **spec: object) -> JsonObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {}}, **spec},
    }


def test_a_job_keeps_its_selector_and_the_labels_of_its_template() -> None:
    live = job({"a": "live", "controller-uid": "u"}, selector={"matchLabels": {"x": "y"}})

    spec = merged(job({"a": "mine"}, selector={"other": 1}), live)["spec"]

    assert spec["selector"] == {"matchLabels": {"x": "y"}}
    assert spec["template"]["metadata"]["labels"] == {"a": "mine", "controller-uid": "u"}


def test_labels_injected_later_do_not_change_the_template_of_a_job() -> None:
    live = job({"foo": "old", "own": "o"})

    found = merged(job({"own": "o"}), live, labels={"foo": "new", "more": "m"})

    assert found["spec"]["template"]["metadata"]["labels"] == {"foo": "old", "own": "o"}
    assert found["metadata"]["labels"] == {"foo": "new", "more": "m"}


def test_a_new_job_gets_injected_labels() -> None:
    created = for_creation(job({"own": "o"}), MergeOptions("ns/mr", {"foo": "bar"}))

    assert created["spec"]["template"]["metadata"]["labels"] == {"own": "o", "foo": "bar"}


# Services


def service(
    type_: str = "", *, annotations: dict[str, str] | None = None, **spec: object
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a", "annotations": annotations or {}},
        "spec": {**({"type": type_} if type_ else {}), **spec},
    }


LIVE_PORTS: Final = [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"}]


def test_a_service_that_becomes_a_node_port_gets_the_given_port() -> None:
    manifest = service("NodePort", ports=[{"name": "http", "port": 80, "nodePort": 444}])

    found = merged(manifest, service("ClusterIP", ports=[{"name": "http", "port": 80}]))

    assert found["spec"]["ports"] == [{"name": "http", "port": 80, "nodePort": 444}]


@pytest.mark.parametrize("type_", ["NodePort", "LoadBalancer"])
@pytest.mark.parametrize(
    ("port", "expected"),
    [
        ({"name": "http", "port": 80}, 30080),
        ({"name": "http", "port": 80, "nodePort": 0}, 30080),
        ({"name": "http", "port": 8080}, 30080),
        ({"name": "web", "port": 80}, 30080),
        ({"name": "web", "port": 8080}, None),
        ({"name": "http", "port": 80, "nodePort": 31000}, 31000),
    ],
)
def test_a_node_port_is_kept_by_number_or_name(
    port: JsonObject, expected: int | None, type_: str
) -> None:
    found = merged(service(type_, ports=[port]), service(type_, ports=LIVE_PORTS))

    assert found["spec"]["ports"][0].get("nodePort") == expected


def test_an_unnamed_port_that_changes_its_number_keeps_its_node_port() -> None:
    live = service("NodePort", ports=[{"port": 80, "nodePort": 30080}])

    found = merged(service("NodePort", ports=[{"port": 81}]), live)

    assert found["spec"]["ports"] == [{"port": 81, "nodePort": 30080}]


def test_one_number_served_by_two_protocols_keeps_both_node_ports() -> None:
    live = [
        {"name": "udp", "port": 53, "protocol": "UDP", "nodePort": 30001},
        {"name": "tcp", "port": 53, "protocol": "TCP", "nodePort": 30002},
    ]
    desired = [{"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}]

    found = merged(service("NodePort", ports=desired), service("NodePort", ports=live))

    assert [port["nodePort"] for port in found["spec"]["ports"]] == [30001, 30002]


def swapped(first: str, second: str) -> list[JsonObject]:
    """Return two ports; each name ends with the number of its port."""
    return [{"name": text[:1], "port": int(text[1:])} for text in (first, second)]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        (swapped("a80", "b81"), [30080, 30081]),
        (swapped("b81", "a80"), [30081, 30080]),
        (swapped("a81", "b80"), [30080, 30081]),
        (swapped("b80", "a81"), [30081, 30080]),
        (swapped("b80", "a82"), [30081, 30080]),
        (swapped("c80", "d81"), [30080, 30081]),
        (swapped("b82", "c81"), [30081, None]),
        (swapped("c81", "a81"), [30081, 30080]),
    ],
)
def test_ports_that_swap_names_or_numbers_never_share_a_node_port(
    ports: list[JsonObject], expected: list[int | None]
) -> None:
    live = [{**p, "nodePort": 30000 + p["port"]} for p in swapped("a80", "b81")]

    found = merged(service("NodePort", ports=ports), service("NodePort", ports=live))

    assert [port.get("nodePort") for port in found["spec"]["ports"]] == expected


def test_a_node_port_that_the_manifest_gives_to_one_port_is_not_kept_for_another() -> None:
    ports = [{"name": "a", "port": 80}, {"name": "c", "port": 90, "nodePort": 30080}]
    live = [{"name": "a", "port": 80, "nodePort": 30080}]

    found = merged(service("NodePort", ports=ports), service("NodePort", ports=live))

    assert [port.get("nodePort") for port in found["spec"]["ports"]] == [None, 30080]


PORTS: Final = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc"), "port": st.integers(80, 83)},
        optional={
            "protocol": st.sampled_from(["TCP", "UDP"]),
            "nodePort": st.sampled_from([0, 30080, 30081]),
        },
    ),
    max_size=4,
)


@given(PORTS, PORTS)
def test_no_node_port_is_handed_out_twice_for_one_protocol(
    live: list[JsonObject], ports: list[JsonObject]
) -> None:
    """The server itself gives no port twice, nor accepts a manifest that does."""
    assume(all(len(of) == len(set(of)) for of in map(node_ports, (live, ports))))

    found = merged(service("NodePort", ports=ports), service("NodePort", ports=live))

    given_out = node_ports(found["spec"]["ports"])
    assert len(given_out) == len(set(given_out))


def node_ports(ports: list[JsonObject]) -> list[tuple[str, int]]:
    return [(p.get("protocol", "TCP"), p["nodePort"]) for p in ports if p.get("nodePort")]


def test_cluster_services_keep_no_node_ports() -> None:
    found = merged(service(ports=[{"port": 80}]), service("NodePort", ports=LIVE_PORTS))

    assert found["spec"]["ports"] == [{"port": 80}]


def test_a_missing_type_is_written_as_cluster_ip() -> None:
    assert merged(service(), service("ClusterIP"))["spec"] == {"type": "ClusterIP"}
    assert for_creation(service(), MergeOptions("a/b", {}))["spec"] == {"type": "ClusterIP"}


@pytest.mark.parametrize(
    ("manifest", "live", "expected"),
    [
        (service(), service(clusterIP="10.0.0.1"), "10.0.0.1"),
        (service(clusterIP="10.0.0.2"), service(clusterIP="10.0.0.1"), "10.0.0.1"),
        (service(clusterIP="None"), service(clusterIP="10.0.0.1"), "None"),
        (service(), service("ExternalName", clusterIP=""), None),
        (service(clusterIP="10.0.0.2"), service("ExternalName"), "10.0.0.2"),
        (service("ExternalName"), service(clusterIP="10.0.0.1"), None),
        (service("LoadBalancer"), service(clusterIP="10.0.0.1"), "10.0.0.1"),
    ],
)
def test_the_cluster_ip_of_a_service_is_kept_if_possible(
    manifest: JsonObject, live: JsonObject, expected: str | None
) -> None:
    assert merged(manifest, live)["spec"].get("clusterIP") == expected


@pytest.mark.parametrize(
    ("manifest", "live", "expected"),
    [
        (service(), service(clusterIP="10.0.0.1"), ""),
        (service(clusterIP="10.0.0.1"), service(clusterIP="10.0.0.1"), ""),
        (service(clusterIP="10.0.0.2"), service(clusterIP="10.0.0.1"), "10.0.0.1"),
        (service(clusterIP="None"), service(clusterIP="10.0.0.1"), ""),
        (service(clusterIP="None"), service(clusterIP="None"), ""),
        (service(), service(clusterIP="None"), "None"),
        (service(clusterIP="10.0.0.2"), service(clusterIP="None"), "None"),
        (service("ExternalName"), service(clusterIP="None"), ""),
        (service(), service("ExternalName"), ""),
    ],
)
def test_an_address_that_the_manifest_does_not_have_is_reported(
    manifest: JsonObject, live: JsonObject, expected: str
) -> None:
    assert kept_address(manifest, live) == expected


@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        ("LoadBalancer", None, "1.2.3.4"),
        ("LoadBalancer", "5.6.7.8", "5.6.7.8"),
        ("NodePort", None, "1.2.3.4"),
        ("ClusterIP", None, None),
    ],
)
def test_the_address_of_a_load_balancer_is_kept(
    type_: str, given: str | None, expected: str | None
) -> None:
    manifest = service(type_, loadBalancerIP=given)

    found = merged(manifest, service("LoadBalancer", loadBalancerIP="1.2.3.4"))

    assert found["spec"].get("loadBalancerIP") == expected


@pytest.mark.parametrize(
    ("manifest", "live", "expected"),
    [
        (("LoadBalancer", "Local", 0), ("LoadBalancer", "Local", 31000), 31000),
        (("LoadBalancer", "Local", 32000), ("LoadBalancer", "Local", 31000), 32000),
        (("LoadBalancer", "Cluster", 0), ("LoadBalancer", "Local", 31000), 0),
        (("LoadBalancer", "Local", 0), ("LoadBalancer", "Cluster", 31000), 0),
        (("NodePort", "Local", 0), ("LoadBalancer", "Local", 31000), 0),
    ],
)
def test_the_health_check_port_is_kept_with_the_local_traffic_policy(
    manifest: tuple[str, str, int], live: tuple[str, str, int], expected: int
) -> None:
    def balanced(type_: str, policy: str, port: int) -> JsonObject:
        return service(type_, externalTrafficPolicy=policy, healthCheckNodePort=port)

    found = merged(balanced(*manifest), balanced(*live))

    assert found["spec"]["healthCheckNodePort"] == expected


@pytest.mark.parametrize("force", [False, True])
def test_openstack_annotations_are_kept_even_if_others_are_removed(force: bool) -> None:
    key = "loadbalancer.openstack.org/"
    live = service(annotations={f"{key}a": "live", f"{key}b": "live", "user": "u"})
    manifest = service(annotations={f"{key}a": "mine"})

    found = merged(manifest, live, force_annotations=force)["metadata"]["annotations"]

    assert found.items() >= {f"{key}a": "mine", f"{key}b": "live"}.items()
    assert ("user" in found) is not force


# Others


def test_a_service_account_keeps_its_secrets() -> None:
    def account(**fields: object) -> JsonObject:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, **fields}

    found = merged(
        account(secrets=[{"name": "mine"}], imagePullSecrets=[{"name": "mine"}]),
        account(secrets=[{"name": "live"}]),
    )

    assert found["secrets"] == [{"name": "live"}]
    assert "imagePullSecrets" not in found


def test_a_new_service_account_has_the_secrets_of_its_manifest() -> None:
    manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": "mine"}]}

    assert for_creation(manifest, MergeOptions("a/b", {}))["secrets"] == [{"name": "mine"}]


@pytest.mark.parametrize(
    ("api_version", "kind"), [("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")]
)
@pytest.mark.parametrize(("manifest", "expected"), [(deployment(), 5), (deployment(1), 1)])
def test_replicas_that_a_manifest_leaves_out_are_kept(
    manifest: JsonObject, expected: int, api_version: str, kind: str
) -> None:
    live = as_kind(deployment(5), api_version, kind)

    assert merged(as_kind(manifest, api_version, kind), live)["spec"]["replicas"] == expected


@pytest.mark.parametrize(("bound", "expected"), [({"uid": "1"}, "2Gi"), ({}, "1Gi")])
def test_a_bound_volume_keeps_its_expanded_capacity(bound: JsonObject, expected: str) -> None:
    def volume(size: str, **spec: object) -> JsonObject:
        metadata = {"name": "a"}
        spec = {"capacity": {"storage": size}, **spec}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata,
            "spec": spec,
        }

    found = merged(volume("1Gi"), volume("2Gi", claimRef=bound))

    assert found["spec"]["capacity"] == {"storage": expected}


def test_a_pod_keeps_the_order_of_what_admission_added() -> None:
    def pod(*containers: JsonObject, **spec: object) -> JsonObject:
        obj = as_kind(deployment(), "v1", "Pod")
        return {**obj, "spec": {"containers": [*containers], **spec}}

    live = pod(
        {"name": "first", "image": "x"},
        {
            "name": "a",
            "image": "old",
            "env": [{"name": "INJECTED", "value": "x"}, {"name": "MINE", "value": "m"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}],
        },
    )
    manifest = pod(
        {
            "name": "a",
            "image": "new",
            "env": [{"name": "MINE", "value": "m"}],
            "ports": [{"containerPort": 80}],
        },
        {"name": "added"},
        priority=5,
    )

    found = merged(manifest, live)["spec"]

    assert found["priority"] == 5
    assert found["containers"] == [
        {"name": "first", "image": "x"},
        {**live["spec"]["containers"][1], "image": "new"},
        {"name": "added"},
    ]


def test_other_kinds_keep_nothing() -> None:
    live = as_kind(deployment(5), "example.com/v1", "Deployment")
    manifest = as_kind(deployment(), "example.com/v1", "Deployment")

    assert "replicas" not in merged(manifest, live)["spec"]
