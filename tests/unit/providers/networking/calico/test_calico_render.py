"""The objects of a Shoot with Calico (spec 40 §5.5, 'Must hold' of §5)."""

import hashlib
import itertools
import json
from collections.abc import Iterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, annotations_of, labels_of, name_of
from pergola.bundle.image_vector import ImageVector
from pergola.bundle.lint import lint
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.calico import Calico, FeatureGates, NetworkConfig
from pergola.providers.networking.calico.lint_exceptions import EXCEPTIONS
from pergola.providers.networking.plugin import Plan, Rendered
from pergola.sandbox.node import network

V4 = ("IPv4",)
V6 = ("IPv6",)
DUAL = ("IPv4", "IPv6")
OFF: JsonObject = {"overlay": {"enabled": False}}
ON: JsonObject = {"overlay": {"enabled": True}}
ON_VXLAN: JsonObject = {"overlay": {"enabled": True}, "vxlan": {"enabled": True}}
EBPF: JsonObject = {"ebpfDataplane": {"enabled": True}}
INSTALLED = {
    "__CNI_MTU__": "1480",
    "__KUBECONFIG_FILEPATH__": "/etc/cni/net.d/calico-kubeconfig",
    "__KUBERNETES_NODE_NAME__": "node-1",
}
"""What Calico's installer writes for the words in the CNI plugin's configuration."""
ALL: JsonObject = {
    "multus": {"enabled": True, "installCNIPlugins": True},
    "birdExporter": {"enabled": True},
    "wireguardEncryption": True,
}


def shoot(*, vpa: bool = False, kube_proxy: bool = True, mode: str | None = None) -> Shoot:
    networking = {"pods": "100.244.0.0/16", "nodes": "10.250.0.0/16"}
    proxy: JsonObject = {"enabled": kube_proxy} | ({"mode": mode} if mode else {})
    kubernetes = {
        "version": "1.36.0",
        "kubeProxy": proxy,
        "verticalPodAutoscaler": {"enabled": vpa},
    }
    return Shoot(
        {
            "spec": {"networking": networking, "kubernetes": kubernetes},
            "status": {
                "networking": {"pods": ["100.244.0.0/16", "2001:db8:1::/112"]},
                "advertisedAddresses": [{"name": "external", "url": "https://api.example.org"}],
            },
        }
    )


def plan(
    config: JsonObject | None = None, families: tuple[str, ...] = V4, of: Shoot | None = None
) -> Plan[NetworkConfig]:
    return Plan(
        config=read_strict(NetworkConfig, config or {}, Calico.config_gvk()),
        pod_range="100.244.0.0/16" if "IPv4" in families else "2001:db8:1::/112",
        service_range="100.32.0.0/13",
        families=families,
        shoot=of or shoot(),
        namespace="shoot--project--name",
    )


CALICO = Calico()


def render(
    config: JsonObject | None = None, families: tuple[str, ...] = V4, of: Shoot | None = None
) -> Rendered:
    return CALICO.render(plan(config, families, of))


def named(rendered: Rendered, kind: str, name: str) -> JsonObject:
    [found] = [o for o in rendered.shoot if o["kind"] == kind and name_of(o) == name]
    return found


def names(rendered: Rendered, kind: str) -> set[str]:
    return {name_of(o) for o in rendered.shoot if o["kind"] == kind}


def node(rendered: Rendered) -> JsonObject:
    return named(rendered, "DaemonSet", "calico-node")


def pod(workload: JsonObject) -> JsonObject:
    spec: JsonObject = workload["spec"]["template"]["spec"]
    return spec


def container(rendered: Rendered, name: str = "calico-node") -> JsonObject:
    found: JsonObject
    [found] = [c for c in pod(node(rendered))["containers"] if c["name"] == name]
    return found


def environment(rendered: Rendered) -> JsonObject:
    return {v["name"]: v.get("value") for v in container(rendered)["env"]}


def containers(rendered: Rendered, of: str) -> list[str]:
    return [c["name"] for c in pod(node(rendered))[of]]


def cni(rendered: Rendered) -> JsonObject:
    """Return the CNI plugin's configuration as the installer writes it."""
    text = named(rendered, "ConfigMap", "calico-config")["data"]["cni_network_config"]
    for word, value in INSTALLED.items():
        text = text.replace(word, value)
    assert "__" not in text
    config: JsonObject = json.loads(text)
    return config


def test_the_example_of_the_seed_renders_the_defaults() -> None:
    example = {"backend": "bird", "ipam": {"cidr": "usePodCIDR", "type": "host-local"}}

    assert render(example) == render({})
    assert named(render(example), "ConfigMap", "calico-config")["data"]["calico_backend"] == "bird"
    assert cni(render(example))["plugins"][0]["ipam"] == {
        "type": "host-local",
        "subnet": "usePodCidr",
    }


def test_calico_has_24_kinds() -> None:
    crds = names(render(), "CustomResourceDefinition")

    assert len(crds) == 24
    assert "ippools.crd.projectcalico.org" in crds
    assert "globalnetworkpolicies.crd.projectcalico.org" in crds
    assert "adminnetworkpolicies.policy.networking.k8s.io" in crds


def test_the_config_map_has_the_settings_of_the_cni_plugin() -> None:
    data = named(render(), "ConfigMap", "calico-config")["data"]

    assert data["typha_service_name"] == "calico-typha"
    assert data["veth_mtu"] == "0"
    assert cni(render())["name"] == "k8s-pod-network"
    assert cni(render())["cniVersion"] == "0.3.1"
    assert [plugin["type"] for plugin in cni(render())["plugins"]] == ["calico", "portmap"]
    assert cni(render())["plugins"][0]["mtu"] == 1480  # a number, or no pod starts


def test_nodes_do_not_connect_to_a_disabled_typha() -> None:
    rendered = render({"typha": {"enabled": False}})

    data = named(rendered, "ConfigMap", "calico-config")["data"]
    assert data["typha_service_name"] == "none"
    assert "calico-typha-deploy" not in names(rendered, "Deployment")
    assert "calico-typha-horizontal-autoscaler" not in names(rendered, "Deployment")
    assert "calico-typha" not in names(rendered, "Service")
    assert names(rendered, "NetworkPolicy") == {"gardener.cloud--allow-from-calico-node"}


def test_calico_node_is_a_critical_component_of_every_node() -> None:
    daemon_set = node(render())

    assert labels_of(daemon_set)["node.gardener.cloud/critical-component"] == "true"
    assert labels_of(daemon_set)["gardener.cloud/role"] == "system-component"
    assert daemon_set["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert pod(daemon_set)["hostNetwork"] is True
    assert pod(daemon_set)["priorityClassName"] == "system-node-critical"
    assert pod(daemon_set)["terminationGracePeriodSeconds"] == 0
    assert {"effect": "NoExecute", "operator": "Exists"} in pod(daemon_set)["tolerations"]
    assert container(render())["resources"]["requests"] == {"cpu": "250m", "memory": "100Mi"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ["log-mtu-issues", "install-cni"]),
        (OFF, ["cleanup-routes", "log-mtu-issues", "install-cni"]),
        (EBPF, ["log-mtu-issues", "install-cni", "ebpf-bootstrap"]),
    ],
)
def test_the_init_containers_depend_on_the_config(config: JsonObject, expected: list[str]) -> None:
    assert containers(render(config), "initContainers") == expected


CONDITION = "network-unavailable-condition-ensurer"
SNAT = "add-snat-rule-to-upstream-dns"


@pytest.mark.parametrize(
    ("config", "sidecars"),
    [
        ({}, [CONDITION]),
        ({"backend": "none"}, []),
        (OFF, [SNAT]),
        ({"overlay": {"enabled": False, "createPodRoutes": True}}, [CONDITION, SNAT]),
        ({"birdExporter": {"enabled": True}}, [CONDITION, "bird-exporter"]),
    ],
)
def test_the_sidecars_depend_on_the_config(config: JsonObject, sidecars: list[str]) -> None:
    assert containers(render(config), "containers") == ["calico-node", *sidecars]


def test_without_privileges_there_are_no_metrics_of_bird() -> None:
    calico = Calico(gates=FeatureGates(non_privileged_calico_node=True))

    rendered = calico.render(plan({"birdExporter": {"enabled": True}}))

    assert "hostpath-init" in containers(rendered, "initContainers")
    assert "bird-exporter" not in containers(rendered, "containers")
    assert container(rendered)["securityContext"]["privileged"] is False
    assert "calico-bird-monitoring" not in names(rendered, "Service")


ENVIRONMENT: list[tuple[JsonObject, tuple[str, ...], JsonObject]] = [
    (
        {},
        V4,
        {
            "USE_POD_CIDR": "true",
            "IP": "autodetect",
            "IP6": "none",
            "CALICO_IPV4POOL_IPIP": "Always",
            "CALICO_IPV4POOL_CIDR": "100.244.0.0/16",
            "IP_AUTODETECTION_METHOD": "cidr=10.250.0.0/16",
            "FELIX_IPINIPENABLED": "true",
            "FELIX_VXLANENABLED": None,
            "FELIX_IPV6SUPPORT": "false",
            "FELIX_BPFENABLED": "false",
            "FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED": "false",
            "FELIX_NATPORTRANGE": "32768:65535",
            "FELIX_DEFAULTENDPOINTTOHOSTACTION": "ACCEPT",
            "CALICO_MANAGE_CNI": "true",
            "FELIX_CHAININSERTMODE": None,
            "FELIX_SERVICELOOPPREVENTION": None,
            "FELIX_NFTABLESMODE": None,
            "FELIX_WIREGUARDENABLED": None,
        },
    ),
    (
        ON_VXLAN,
        V4,
        {
            "USE_POD_CIDR": None,
            "FELIX_VXLANENABLED": "true",
            "CALICO_IPV4POOL_VXLAN": "Always",
            "CALICO_IPV4POOL_IPIP": "Never",
            "FELIX_IPINIPENABLED": None,
        },
    ),
    (
        OFF,
        V4,
        {
            "CALICO_IPV4POOL_IPIP": "Never",
            "FELIX_IPINIPENABLED": "false",
            "FELIX_CHAININSERTMODE": "Append",
        },
    ),
    (
        {"ipv4": {"pool": "vxlan"}} | OFF,
        V4,
        {"CALICO_IPV4POOL_VXLAN": "Never", "FELIX_IPINIPENABLED": "false"},
    ),
    (
        {},
        V6,
        {
            "IP": "none",
            "IP6": "autodetect",
            "CALICO_IPV6POOL_VXLAN": "Never",
            "CALICO_IPV6POOL_CIDR": "2001:db8:1::/112",
            "CALICO_IPV6POOL_NAT_OUTGOING": "false",
            "CALICO_ROUTER_ID": "hash",
            "FELIX_IPV6SUPPORT": "true",
            "FELIX_IPINIPENABLED": "false",
            "CALICO_IPV4POOL_CIDR": None,
        },
    ),
    ({}, DUAL, {"IP": "autodetect", "IP6": "autodetect", "USE_POD_CIDR": "true"}),
    (
        {"wireguardEncryption": True},
        DUAL,
        {
            "FELIX_WIREGUARDENABLED": "true",
            "FELIX_WIREGUARDENABLEDV6": "true",
            "CALICO_IPV6POOL_NAT_OUTGOING": "true",
        },
    ),
    (EBPF, V4, {"FELIX_BPFENABLED": "true", "FELIX_BPFKUBEPROXYHEALTHZPORT": "10257"}),
    ({"serviceLoopPrevention": "Reject"}, V4, {"FELIX_SERVICELOOPPREVENTION": "Reject"}),
]


@pytest.mark.parametrize(("config", "families", "expected"), ENVIRONMENT)
def test_the_environment_of_calico_node_follows_the_config(
    config: JsonObject, families: tuple[str, ...], expected: JsonObject
) -> None:
    found = environment(render(config, families))

    assert {name: found.get(name) for name in expected} == expected


def test_without_kube_proxy_calico_routes_services_and_removes_its_rules() -> None:
    rendered = render(EBPF, of=shoot(kube_proxy=False))

    found = environment(rendered)
    assert found["FELIX_BPFENABLED"] == "true"
    assert found["FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED"] == "true"
    assert "FELIX_BPFKUBEPROXYHEALTHZPORT" not in found
    assert found["KUBERNETES_SERVICE_HOST"] == "api.example.org"
    assert found["KUBERNETES_SERVICE_PORT"] == "443"


def test_calico_uses_nftables_like_kube_proxy() -> None:
    rendered = render(of=shoot(mode="NFTables"))

    assert environment(rendered)["FELIX_NFTABLESMODE"] == "Enabled"


def permitted(role: JsonObject) -> set[tuple[str, str, str]]:
    return {
        triple
        for rule in role["rules"]
        if "resourceNames" not in rule
        for triple in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


@pytest.mark.parametrize(
    ("account", "on_the_node"),
    [("calico-node", "sandbox:felix"), ("calico-cni-plugin", "sandbox:cni-plugin")],
)
def test_the_roles_suffice_on_a_sandbox_node(account: str, on_the_node: str) -> None:
    [proven] = [
        obj
        for obj in network.permissions()
        if (obj["kind"], name_of(obj)) == ("ClusterRole", on_the_node)
    ]

    granted = permitted(named(render(), "ClusterRole", account))

    assert permitted(proven) - granted == set()


def test_the_pod_template_changes_with_the_config_map() -> None:
    rendered = render()
    config = named(rendered, "ConfigMap", "calico-config")
    expected = hashlib.sha256(orjson.dumps(config, option=orjson.OPT_SORT_KEYS)).hexdigest()

    found = annotations_of(node(rendered)["spec"]["template"])["checksum/configmap-calico"]

    assert found == expected
    other = node(render({"vethMTU": "1440"}))["spec"]["template"]
    assert annotations_of(other)["checksum/configmap-calico"] != expected


def ip_pools(rendered: Rendered) -> dict[str, JsonObject]:
    return {name_of(o): o["spec"] for o in rendered.shoot if o["kind"] == "IPPool"}


def test_no_pool_is_rendered_while_the_overlay_is_unset() -> None:
    assert ip_pools(render()) == {}


@pytest.mark.parametrize(
    ("config", "ipip", "vxlan"),
    [(ON, "Always", "Never"), (ON_VXLAN, "Never", "Always"), (OFF, "Never", "Never")],
)
def test_the_pool_follows_the_overlay(config: JsonObject, ipip: str, vxlan: str) -> None:
    assert ip_pools(render(config))["default-ipv4-ippool"] == {
        "cidr": "100.244.0.0/16",
        "blockSize": 26,
        "ipipMode": ipip,
        "vxlanMode": vxlan,
        "natOutgoing": True,
        "nodeSelector": "all()",
        "allowedUses": ["Workload", "Tunnel"],
    }


def test_without_an_overlay_traffic_to_nodes_is_not_masqueraded() -> None:
    assert ip_pools(render(OFF))["no-snat-for-node-cidr"] == {
        "cidr": "10.250.0.0/16",
        "disabled": True,
        "disableBGPExport": True,
    }
    assert "no-snat-for-node-cidr" not in ip_pools(render(ON))


@pytest.mark.parametrize("families", [V6, DUAL])
def test_ipv6_always_has_its_pool(families: tuple[str, ...]) -> None:
    pool = ip_pools(render({}, families))["default-ipv6-ippool"]

    assert (pool["cidr"], pool["blockSize"]) == ("2001:db8:1::/112", 122)
    assert (pool["ipipMode"], pool["vxlanMode"], pool["natOutgoing"]) == ("Never", "Never", False)


def test_typha_scales_with_the_nodes() -> None:
    rendered = render()
    deployment = named(rendered, "Deployment", "calico-typha-deploy")

    assert "replicas" not in deployment["spec"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {
        "maxSurge": "100%",
        "maxUnavailable": 1,
    }
    assert pod(deployment)["terminationGracePeriodSeconds"] == 300
    [typha] = pod(deployment)["containers"]
    assert typha["resources"]["requests"] == {"cpu": "200m", "memory": "100Mi"}
    assert typha["readinessProbe"]["httpGet"]["port"] == 9098
    budget = named(rendered, "PodDisruptionBudget", "calico-typha")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    ladder = named(rendered, "ConfigMap", "calico-typha-horizontal-autoscaler")["data"]["ladder"]
    assert json.loads(ladder)["nodesToReplicas"] == [
        [1, 1],
        [2, 2],
        [100, 3],
        [250, 4],
        [500, 5],
        [1000, 6],
        [1500, 7],
        [2000, 8],
    ]


PRESERVE = "resources.gardener.cloud/preserve-resources"


def test_requests_grow_in_proportion_to_the_cluster() -> None:
    rendered = render()

    typha = named(rendered, "ConfigMap", "calico-typha-vertical-autoscaler")["data"]
    assert json.loads(typha["typha-autoscaler"])["calico-typha"]["requests"] == {
        "cpu": {"base": "180m", "step": "140m", "nodesPerStep": 17, "max": "1000m"},
        "memory": {"base": "180Mi", "step": "70Mi", "nodesPerStep": 17, "max": "2000Mi"},
    }
    own = named(rendered, "ConfigMap", "calico-node-vertical-autoscaler")["data"]
    assert json.loads(own["node-autoscaler"])["calico-node"]["requests"] == {
        "memory": {"base": "50Mi", "step": "50Mi", "nodesPerStep": 10, "max": "1400Mi"}
    }
    assert annotations_of(node(rendered))[PRESERVE] == "true"
    assert names(rendered, "VerticalPodAutoscaler") == set()


def test_requests_grow_by_the_vertical_pod_autoscaler() -> None:
    config = {"autoScaling": {"mode": "vpa", "resources": {"node": {"cpu": "100m"}}}}

    rendered = render(config, of=shoot(vpa=True))

    assert names(rendered, "VerticalPodAutoscaler") == {
        "calico-node",
        "calico-typha",
        "calico-kube-controllers",
    }
    spec = named(rendered, "VerticalPodAutoscaler", "calico-node")["spec"]
    assert spec["updatePolicy"] == {"updateMode": "InPlaceOrRecreate"}
    assert spec["resourcePolicy"]["containerPolicies"] == [
        {
            "containerName": "calico-node",
            "controlledValues": "RequestsOnly",
            "minAllowed": {"cpu": "100m"},
        },
        {"containerName": "*", "mode": "Off"},
    ]
    assert "calico-node-vertical-autoscaler" not in names(rendered, "Deployment")
    assert annotations_of(node(rendered))[PRESERVE] == "true"


def test_static_requests_are_taken_from_the_user() -> None:
    amounts = {"node": {"memory": "1Gi"}, "typha": {"cpu": "2"}}
    rendered = render({"autoScaling": {"mode": "static", "resources": amounts}})

    assert container(rendered)["resources"]["requests"] == {"cpu": "250m", "memory": "1Gi"}
    [typha] = pod(named(rendered, "Deployment", "calico-typha-deploy"))["containers"]
    assert typha["resources"]["requests"] == {"cpu": "2", "memory": "100Mi"}
    assert PRESERVE not in annotations_of(node(rendered))
    assert names(rendered, "Deployment") == {
        "calico-typha-deploy",
        "calico-typha-horizontal-autoscaler",
        "calico-kube-controllers",
    }


@pytest.mark.parametrize("config", [{}, OFF, EBPF])
def test_every_agent_uses_the_configured_address_of_the_api_server(config: JsonObject) -> None:
    rendered = render(config)
    override = [{"configMapRef": {"name": "kubernetes-services-endpoint", "optional": True}}]

    agents = [
        *pod(node(rendered))["initContainers"],
        *pod(node(rendered))["containers"],
        *pod(named(rendered, "Deployment", "calico-typha-deploy"))["containers"],
    ]

    found = {c["name"] for c in agents if c.get("envFrom") == override}
    expected = {"install-cni", "calico-node", "calico-typha", CONDITION}
    assert found == {c["name"] for c in agents} & expected


def test_each_node_logs_packets_that_are_too_big() -> None:
    [log] = [c for c in pod(node(render()))["initContainers"] if c["name"] == "log-mtu-issues"]

    script = log["command"][2]
    assert "--icmp-type fragmentation-needed" in script
    assert "--icmpv6-type packet-too-big" in script
    assert script.count('-j LOG --log-prefix "PACKET-TOO-BIG "') == 2
    assert log["securityContext"]["capabilities"]["add"] == ["NET_ADMIN", "NET_RAW"]


def test_no_image_comes_from_outside_of_calico_for_the_condition_of_a_node() -> None:
    assert container(render(), CONDITION)["image"] == container(render())["image"]


def test_typha_may_create_the_tiers_of_policies() -> None:
    role = named(render(), "ClusterRole", "calico-typha")

    assert any(
        rule["resources"] == ["tiers"] and "create" in rule["verbs"] for rule in role["rules"]
    )


def test_a_single_controller_pod_cleans_up() -> None:
    deployment = named(render(), "Deployment", "calico-kube-controllers")

    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    [only] = pod(deployment)["containers"]
    assert {"name": "ENABLED_CONTROLLERS", "value": "node,loadbalancer"} in only["env"]
    assert only["resources"]["requests"] == {"cpu": "10m", "memory": "50Mi"}


def test_backend_none_needs_no_controllers() -> None:
    rendered = render({"backend": "none"})

    assert "calico-kube-controllers" not in names(rendered, "Deployment")
    assert "calico-kube-controllers" not in names(rendered, "PodDisruptionBudget")
    assert "calico-kube-controllers" not in names(rendered, "ServiceAccount")


def test_multus_gives_pods_extra_networks() -> None:
    rendered = render({"multus": {"enabled": True}})

    assert "multus" in names(rendered, "DaemonSet")
    crds = names(rendered, "CustomResourceDefinition")
    assert "network-attachment-definitions.k8s.cni.cncf.io" in crds
    init = pod(named(rendered, "DaemonSet", "multus"))["initContainers"]
    assert [c["name"] for c in init] == ["install-multus-cni"]
    more = render({"multus": {"enabled": True, "installCNIPlugins": True}})
    init = pod(named(more, "DaemonSet", "multus"))["initContainers"]
    assert [c["name"] for c in init] == ["install-multus-cni", "install-cni-plugins"]
    assert "multus" not in names(render({"multus": {"installCNIPlugins": True}}), "DaemonSet")


def test_monitoring_objects_are_in_the_namespace_of_the_network() -> None:
    rendered = render({"birdExporter": {"enabled": True}})

    found = {(o["kind"], name_of(o)) for o in rendered.seed}
    assert found == {
        ("ConfigMap", "calico-dashboards"),
        ("ScrapeConfig", "shoot-calico-felix"),
        ("ScrapeConfig", "shoot-calico-typha"),
        ("ScrapeConfig", "shoot-calico-bird"),
    }
    for obj in rendered.seed:
        assert obj["metadata"]["namespace"] == "shoot--project--name"
        if obj["kind"] == "ScrapeConfig":
            assert labels_of(obj)["prometheus"] == "shoot"
    services = names(rendered, "Service")
    assert {"calico-felix-monitoring", "calico-typha-monitoring"} <= services
    assert "calico-bird-monitoring" in services


def test_without_bird_exporter_nothing_is_scraped_from_it() -> None:
    rendered = render()

    assert "shoot-calico-bird" not in {name_of(o) for o in rendered.seed}
    assert "calico-bird-monitoring" not in names(rendered, "Service")


def test_the_status_has_the_effective_settings() -> None:
    assert render(OFF, DUAL).status == {
        "backend": "none",
        "dataplane": "iptables",
        "ipam": "host-local",
        "vethMTU": "0",
        "ipv4": {"pool": "ipip", "mode": "Never", "natOutgoing": True},
        "ipv6": {"pool": "vxlan", "mode": "Never", "natOutgoing": False},
        "agentImage": container(render())["image"],
    }


def test_conflicting_settings_are_warnings_of_the_network() -> None:
    assert render({"backend": "bird"} | OFF).warnings == [
        'backend "bird" is overridden by the overlay: it is "none"'
    ]


def test_images_can_be_overridden() -> None:
    text = "images: [{name: calico-node, repository: registry.example.org/node, tag: v1.2.3}]"
    vector = Calico()._images.override(text)

    rendered = Calico(images=vector).render(plan())

    assert container(rendered)["image"] == "registry.example.org/node:v1.2.3"


def test_a_custom_image_vector_must_be_complete() -> None:
    images = ImageVector.load("images: []")

    with pytest.raises(Exception, match="calico-node"):
        Calico(images=images).render(plan())


def test_only_one_of_two_families_is_rendered_while_nodes_are_migrated() -> None:
    """The plan of §1.4 step 4 has fewer families than the Network; the config may have both."""
    both = {"ipv4": {"mode": "Never"}, "ipv6": {"mode": "Never"}}

    rendered = render(both, V4)

    assert environment(rendered)["IP6"] == "none"
    assert "default-ipv6-ippool" not in ip_pools(rendered)
    assert environment(render(both, DUAL))["IP6"] == "autodetect"


def packed(rendered: Rendered) -> bytes:
    return orjson.dumps([rendered.shoot, rendered.seed, rendered.status])


@pytest.mark.parametrize("config", [{}, ON, OFF, ON_VXLAN, EBPF, ALL])
def test_the_same_plan_renders_the_same_bytes(config: JsonObject) -> None:
    assert packed(render(config)) == packed(render(config))
    assert packed(Calico().render(plan(config))) == packed(render(config))


OTHERS: list[JsonObject] = [
    OFF,
    ON_VXLAN,
    {"ipv4": {"pool": "vxlan"}},
    {"ipam": {"type": "calico-ipam"}},
    EBPF,
    {"typha": {"enabled": False}},
]


@pytest.mark.parametrize("other", OTHERS)
def test_reverting_a_change_restores_all_objects(other: JsonObject) -> None:
    before = packed(render())

    assert packed(render(other)) != before
    assert packed(render({})) == before


def changed(before: Rendered, after: Rendered) -> set[str]:
    """Return the objects that were changed, added or removed."""
    old, new = (
        {f"{o['kind']}/{name_of(o)}": orjson.dumps(o, option=orjson.OPT_SORT_KEYS) for o in r.shoot}
        for r in (before, after)
    )
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def test_from_an_overlay_to_none_only_its_objects_change() -> None:
    found = changed(render(ON), render(OFF))

    assert {"IPPool/default-ipv4-ippool", "IPPool/no-snat-for-node-cidr"} <= found
    assert {"DaemonSet/calico-node", "ConfigMap/calico-config"} <= found
    assert not any("typha" in name or "CustomResource" in name for name in found)
    pools = ip_pools(render(OFF))
    assert (
        ip_pools(render(ON))["default-ipv4-ippool"]["cidr"] == pools["default-ipv4-ippool"]["cidr"]
    )


def test_from_one_family_to_two_pods_get_two_addresses() -> None:
    found = changed(render({}, V4), render({}, DUAL))

    assert {"DaemonSet/calico-node", "IPPool/default-ipv6-ippool"} <= found
    assert cni(render({}, DUAL))["plugins"][0]["ipam"]["ranges"] == [
        [{"subnet": "usePodCidrIPv6"}],
        [{"subnet": "usePodCidr"}],
    ]


def test_from_ipip_to_vxlan_the_pool_changes_its_encapsulation() -> None:
    assert changed(render(ON), render(ON_VXLAN)) == {
        "ConfigMap/calico-config",
        "DaemonSet/calico-node",
        "Deployment/calico-typha-deploy",  # addresses are no longer those of the nodes' ranges
        "IPPool/default-ipv4-ippool",
    }


def test_without_kube_proxy_only_calicos_pods_change_and_the_nodes_roll_once() -> None:
    with_it, without = render(EBPF), render(EBPF, of=shoot(kube_proxy=False))

    assert changed(with_it, without) == {"DaemonSet/calico-node", "Deployment/calico-typha-deploy"}
    assert changed(without, render(EBPF, of=shoot(kube_proxy=False))) == set()


POOLS_AND_MODES = list(itertools.product(("ipip", "vxlan"), ("Always", "Never", "Off")))
OPTIONS: dict[str, list[JsonObject]] = {
    "backend": [{}, *({"backend": backend} for backend in ("bird", "none", "vxlan"))],
    "overlay": [{}, ON, OFF, {"overlay": {"enabled": False, "createPodRoutes": True}}],
    "vxlan": [{}, {"vxlan": {"enabled": True}}],
    "ipv4": [{}, *({"ipv4": {"pool": p, "mode": m}} for p, m in POOLS_AND_MODES)],
    "ipv6": [{}, *({"ipv6": {"pool": p, "mode": m}} for p, m in POOLS_AND_MODES)],
    "ipam": [{}, {"ipam": {"type": "calico-ipam"}}, {"ipam": {"cidr": "10.0.0.0/8"}}],
}


def products() -> Iterator[JsonObject]:
    for parts in itertools.product(*OPTIONS.values()):
        yield {key: value for part in parts for key, value in part.items()}


@pytest.mark.parametrize("families", [V4, V6, DUAL])
def test_every_valid_config_renders(families: tuple[str, ...]) -> None:
    """Every combination of the settings that determine how pods are reached."""
    rendered = 0
    for config in products():
        desired = plan(config, families)
        if not list(CALICO.check(desired.config, families)):
            assert CALICO.render(desired).shoot
            rendered += 1

    assert rendered >= 32


REST: dict[str, list[JsonObject]] = {
    "typha": [{}, {"typha": {"enabled": False}}],
    "ebpf": [{}, EBPF],
    "scaling": [
        {},
        {"autoScaling": {"mode": "vpa", "resources": {"node": {"cpu": "1"}}}},
        {"autoScaling": {"mode": "static", "resources": {"typha": {"memory": "1Gi"}}}},
    ],
    "exporter": [{}, {"birdExporter": {"enabled": True}}],
    "multus": [{}, {"multus": {"enabled": True, "installCNIPlugins": True}}],
    "loops": [{}, {"serviceLoopPrevention": "Drop"}],
    "encryption": [{}, {"wireguardEncryption": True}],
    "mtu": [{}, {"vethMTU": "1400"}],
}


@given(
    parts=st.tuples(*(st.sampled_from(options) for options in (OPTIONS | REST).values())),
    families=st.sampled_from([V4, V6, DUAL]),
    vpa=st.booleans(),
    kube_proxy=st.booleans(),
    non_privileged=st.booleans(),
)
def test_every_rendering_follows_the_house_rules(
    parts: tuple[JsonObject, ...],
    families: tuple[str, ...],
    *,
    vpa: bool,
    kube_proxy: bool,
    non_privileged: bool,
) -> None:
    calico = Calico(gates=FeatureGates(non_privileged_calico_node=non_privileged))
    merged = {key: value for part in parts for key, value in part.items()}
    desired = plan(merged, families, shoot(vpa=vpa, kube_proxy=kube_proxy))
    refused = [
        *calico.check(desired.config, families),
        *calico.check_shoot(desired.config, desired.shoot),
    ]
    if not refused:
        assert lint(calico.render(desired).shoot, allow=EXCEPTIONS) == []
