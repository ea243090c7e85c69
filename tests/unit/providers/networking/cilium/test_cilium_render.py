"""The objects of the Shoot: spec 40 §6.4, pairs of all options, and changes of options."""

from collections.abc import Iterator
from itertools import product
from typing import Final

import orjson
import pytest

from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, name_of
from pergola.bundle.image_vector import ImageVector
from pergola.bundle.lint import lint
from pergola.extension_api.cluster import Shoot
from pergola.extensions.webhooks.shoot_mutator import KUBE_PROXY_OFF
from pergola.providers.networking.cilium import Cilium, NetworkConfig
from pergola.providers.networking.cilium.house_rules import EXCEPTIONS, EXTERNAL
from pergola.providers.networking.plugin import Plan, Rendered
from tests.support.cilium_plans import (
    HOST,
    PODS,
    PODS_IPV6,
    cilium_config,
    cilium_plan,
    cilium_shoot,
)

IPV4 = ("IPv4",)
BOTH = ("IPv4", "IPv6")
CILIUM: Final = Cilium()
ADVERTISED: Final = cilium_shoot(kube_proxy=False)


def render(
    fields: JsonObject | None = None,
    shoot: Shoot | None = None,
    families: tuple[str, ...] = IPV4,
    state: JsonObject | None = None,
) -> Rendered:
    plan = cilium_plan(cilium_config(**(fields or {})), shoot, families=families, state=state)
    return CILIUM.render(plan)


def named(rendered: Rendered) -> dict[str, JsonObject]:
    return {f"{obj['kind']}/{name_of(obj)}": obj for obj in rendered.shoot}


def pod_of(obj: JsonObject) -> JsonObject:
    return map_at(obj, "spec", "template", "spec")


def agent(rendered: Rendered) -> JsonObject:
    return named(rendered)["DaemonSet/cilium"]


def config_of(rendered: Rendered) -> dict[str, str]:
    return dict(named(rendered)["ConfigMap/cilium-config"]["data"])


# §6.4, in the order of its table

ALWAYS: Final = {
    "ConfigMap/cilium-config",
    "ConfigMap/label-prefix-conf",
    "DaemonSet/cilium",
    "Service/hubble-metrics",
    "DaemonSet/cilium-envoy",
    "ConfigMap/cilium-envoy-config",
    "Service/cilium-envoy",
    "ServiceAccount/cilium-envoy",
    "Deployment/cilium-operator",
    "PodDisruptionBudget/cilium-operator",
    "Service/cilium-operator",
    "CiliumNetworkPolicy/gardener.cloud--allow-dns-from-remote-nodes",
    "ServiceAccount/cilium",
    "ClusterRole/cilium",
    "ClusterRoleBinding/cilium",
    "Role/cilium-config-agent",
    "RoleBinding/cilium-config-agent",
    "ServiceAccount/cilium-operator",
    "ClusterRole/cilium-operator",
    "ClusterRoleBinding/cilium-operator",
    "Role/cilium-operator",
    "RoleBinding/cilium-operator",
}
HUBBLE: Final = {
    "Deployment/hubble-relay",
    "Service/hubble-relay",
    "Service/hubble-peer",
    "ConfigMap/hubble-relay-config",
    "ServiceAccount/hubble-relay",
    "NetworkPolicy/gardener.cloud--allow-hubble-relay",
    "Job/hubble-generate-certs",
    "CronJob/hubble-generate-certs",
    "ServiceAccount/hubble-generate-certs",
    "Role/hubble-generate-certs",
    "RoleBinding/hubble-generate-certs",
    "Deployment/hubble-ui",
    "Service/hubble-ui",
    "ConfigMap/hubble-ui-nginx",
    "Ingress/hubble-ui",
    "ServiceAccount/hubble-ui",
    "ClusterRole/hubble-ui",
    "ClusterRoleBinding/hubble-ui",
    "NetworkPolicy/gardener.cloud--allow-hubble-ui",
}
NODE_LOCAL_DNS: Final = {
    "CiliumLocalRedirectPolicy/nodelocaldns",
    "CiliumClusterwideNetworkPolicy/nodelocaldns",
}


def test_a_shoot_gets_the_specified_objects() -> None:
    with_dns = cilium_shoot(node_local_dns=True)

    assert set(named(render())) == ALWAYS
    assert set(named(render({"hubble": {"enabled": True}}))) == ALWAYS | HUBBLE
    assert set(named(render(shoot=with_dns))) == ALWAYS | NODE_LOCAL_DNS


def test_no_object_is_duplicated() -> None:
    rendered = render({"hubble": {"enabled": True}}, cilium_shoot(node_local_dns=True))

    assert len(named(rendered)) == len(rendered.shoot)


def test_the_agent_runs_on_every_node() -> None:
    found = agent(render())
    pod = pod_of(found)
    container = pod["containers"][0]

    assert labels_of(found)["node.gardener.cloud/critical-component"] == "true"
    assert found["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert container["resources"]["requests"]["memory"] == "200Mi"
    assert {port["containerPort"] for port in container["ports"]} == {9090, 9879, 9091, 4244}


INIT_CONTAINERS: Final = [
    "disable-rp-filter",
    "config",
    "mount-cgroup",
    "apply-sysctl-overwrites",
    "mount-bpf-fs",
    "clean-cilium-state",
    "install-cni-binaries",
]


def test_nodes_are_prepared_and_cleaned_up_without_kube_proxy() -> None:
    def names(shoot: Shoot) -> list[str]:
        return [c["name"] for c in pod_of(agent(render(shoot=shoot)))["initContainers"]]

    assert names(cilium_shoot(kube_proxy=True)) == INIT_CONTAINERS
    assert names(ADVERTISED) == [*INIT_CONTAINERS, "cilium-kube-proxy-clean-up"]


@pytest.mark.parametrize(
    ("option", "sidecar"),
    [
        ("snatToUpstreamDNS", "snat-to-upstream-dns"),
        ("snatOutOfCluster", "snat-out-of-cluster"),
    ],
)
def test_an_snat_option_adds_its_sidecar(option: str, sidecar: str) -> None:
    containers = pod_of(agent(render({option: {"enabled": True}}, families=BOTH)))["containers"]

    assert [c["name"] for c in containers] == ["cilium-agent", sidecar]
    rules = environment(containers[1])
    assert f"-s {PODS}" in rules["IPTABLES_RULES"]
    assert f"-s {PODS_IPV6}" in rules["IP6TABLES_RULES"]
    assert len(f"cilium-{sidecar}") < 29, "iptables takes no longer name of a chain"


def test_upstream_resolvers_can_be_in_the_node_range() -> None:
    def rules(option: str) -> str:
        containers = pod_of(agent(render({option: {"enabled": True}})))["containers"]
        return environment(containers[1])["IPTABLES_RULES"]

    assert "-d 10.250.0.0/16" not in rules("snatToUpstreamDNS")
    assert "--dport 53" in rules("snatToUpstreamDNS")
    assert "-d 10.250.0.0/16" in rules("snatOutOfCluster")
    assert "--dport" not in rules("snatOutOfCluster")


def environment(container: JsonObject) -> dict[str, str]:
    return {v["name"]: v["value"] for v in container.get("env", ()) if "value" in v}


def test_without_kube_proxy_agents_and_operator_know_the_api_server() -> None:
    address = {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": "443"}

    objects = named(render(shoot=ADVERTISED))

    for workload in ("DaemonSet/cilium", "Deployment/cilium-operator"):
        container = pod_of(objects[workload])["containers"][0]
        assert address.items() <= environment(container).items()
    text = orjson.dumps(render(shoot=cilium_shoot(kube_proxy=True)).shoot)
    assert b"KUBERNETES_SERVICE_HOST" not in text


def test_the_operator_has_one_replica_that_another_webhook_may_raise() -> None:
    label = "high-availability-config.resources.gardener.cloud/type"
    several = named(render(shoot=cilium_shoot(least_workers=2)))["Deployment/cilium-operator"]
    single = named(render(shoot=cilium_shoot(least_workers=1)))["Deployment/cilium-operator"]

    assert several["spec"]["replicas"] == single["spec"]["replicas"] == 1
    assert labels_of(several)[label] == "controller"
    assert label not in labels_of(single)
    ports = {port["containerPort"] for port in pod_of(several)["containers"][0]["ports"]}
    assert ports == {6942, 9234}


def test_the_proxy_connects_to_the_agent_and_sees_original_destinations() -> None:
    text = named(render())["ConfigMap/cilium-envoy-config"]["data"]["bootstrap-config.json"]
    resources = orjson.loads(text)["staticResources"]

    assert {cluster["name"] for cluster in resources["clusters"]} == {
        "xds-grpc-cilium",
        "/envoy-admin",
        "ingress-cluster",
        "ingress-cluster-tls",
        "egress-cluster",
        "egress-cluster-tls",
    }
    ports = {v["address"]["socketAddress"]["portValue"] for v in resources["listeners"]}
    assert ports == {9964, 9878}


def test_certificates_are_renewed_every_four_months() -> None:
    objects = named(render({"hubble": {"enabled": True}}))

    assert objects["CronJob/hubble-generate-certs"]["spec"]["schedule"] == "0 0 1 */4 *"
    job = annotations_of(objects["Job/hubble-generate-certs"])
    assert job["resources.gardener.cloud/delete-on-invalid-update"] == "true"


def test_hubble_requires_a_password() -> None:
    ingress = named(render({"hubble": {"enabled": True}}))["Ingress/hubble-ui"]

    assert annotations_of(ingress)["nginx.ingress.kubernetes.io/auth-type"] == "basic"
    assert ingress["spec"]["rules"][0]["host"] == "hubble-ui.ingress.demo.example.org"


def test_dns_queries_are_redirected_to_the_node() -> None:
    objects = named(render(shoot=cilium_shoot(node_local_dns=True)))
    policy = objects["CiliumNetworkPolicy/gardener.cloud--allow-dns-from-remote-nodes"]["spec"]
    clusterwide = objects["CiliumClusterwideNetworkPolicy/nodelocaldns"]

    assert policy["ingress"] == [
        {
            "fromEntities": ["remote-node"],
            "toPorts": [
                {
                    "ports": [
                        {"port": "8053", "protocol": "TCP"},
                        {"port": "8053", "protocol": "UDP"},
                    ]
                }
            ],
        }
    ]
    ports = {
        port["port"]
        for rule in clusterwide["spec"]["ingress"]
        for to in rule["toPorts"]
        for port in to["ports"]
    }
    assert ports == {"53", "9253", "9353"}
    assert "namespace" not in clusterwide["metadata"]


def test_label_prefixes_are_immutable_and_the_same_for_all() -> None:
    one = named(render())["ConfigMap/label-prefix-conf"]
    other = named(render({"hubble": {"enabled": True}}, ADVERTISED, BOTH))

    assert one["immutable"] is True
    assert one == other["ConfigMap/label-prefix-conf"]


def test_monitoring_objects_are_in_the_seed() -> None:
    seed = render().seed

    assert [f"{obj['kind']}/{name_of(obj)}" for obj in seed] == [
        "ConfigMap/cilium-dashboards",
        "ScrapeConfig/shoot-cilium-agent",
        "ScrapeConfig/shoot-cilium-hubble",
        "ScrapeConfig/shoot-cilium-operator",
        "PrometheusRule/shoot-cilium-agent",
    ]
    assert {obj["metadata"]["namespace"] for obj in seed} == {"shoot--test--demo"}


def test_the_status_reports_the_effective_settings() -> None:
    fields = {"tunnel": "vxlan", "overlay": {"enabled": False}, "mtu": 1400}

    rendered = render(fields, ADVERTISED, state={"ipam": {"mode": "cluster-pool"}})

    assert rendered.status == {
        "agentVersion": "v1.19.7",
        "routingMode": "native",
        "ipam": "cluster-pool",
        "kubeProxyReplacement": True,
        "mtu": 1400,
    }
    assert rendered.warnings == ["tunnel: vxlan is not used, because overlay.enabled is false"]


def test_the_ipam_mode_is_stored_in_the_state_once_known() -> None:
    state = {
        "apiVersion": "cilium.networking.extensions.gardener.cloud/v1alpha1",
        "kind": "NetworkState",
        "ipam": {"mode": "cluster-pool", "pool": {"cluster-pool-ipv4-cidr": "10.0.0.0/8"}},
    }

    assert render(state=state).state == state
    assert render().state is None


def test_an_override_changes_the_images() -> None:
    override = """
    images:
    - name: cilium-agent
      repository: registry.example.org/cilium
      tag: v9.9.9
    """
    vector = ImageVector.load(
        "images: [" + ", ".join(f"{{name: {n}, repository: r/{n}, tag: v1}}" for n in IMAGES) + "]"
    ).override(override)

    rendered = Cilium(vector).render(cilium_plan())

    containers = pod_of(agent(rendered))["containers"]
    assert containers[0]["image"] == "registry.example.org/cilium:v9.9.9"
    assert rendered.status["agentVersion"] == "v9.9.9"


IMAGES: Final = (
    "cilium-agent",
    "cilium-operator",
    "cilium-envoy",
    "hubble-relay",
    "hubble-ui",
    "hubble-ui-backend",
    "hubble-certgen",
)

# All pairs of options: a config that passes validation can be rendered

CHOICES: Final[dict[str, list[object]]] = {
    "overlay": [None, {"enabled": True}, {"enabled": False, "createPodRoutes": True}],
    "tunnel": [None, "geneve", "disabled"],
    "loadBalancingMode": [None, "dsr"],
    "egressGateway": [None, {"enabled": True}],
    "snatToUpstreamDNS": [None, {"enabled": True}],
    "encryption": [
        None,
        {"enabled": True, "mode": "ipsec"},
        {"enabled": True, "mode": "wireguard", "strictMode": True},
    ],
    "ipv4NativeRoutingCIDREnabled": [None, True, False],
}
SHOOTS: Final = tuple(
    (cilium_shoot(kube_proxy=proxy, mode=mode, node_local_dns=dns), families)
    for proxy, mode, dns, families in product(
        (True, False), (None, "IPVS"), (True, False), (IPV4, ("IPv6",), BOTH)
    )
)


def configs() -> Iterator[NetworkConfig]:
    for index, values in enumerate(product(*CHOICES.values())):
        chosen = dict(zip(CHOICES, values, strict=True))
        chosen["hubble"] = {"enabled": index % 2 == 0}  # which nothing else depends on
        yield cilium_config(**{k: v for k, v in chosen.items() if v is not None})


def is_right(plan: Plan[NetworkConfig]) -> bool:
    return not [
        *CILIUM.check(plan.config, plan.families),
        *CILIUM.check_shoot(plan.config, plan.shoot),
    ]


def test_every_valid_config_can_be_rendered() -> None:
    rendered = refused = 0
    for config, (shoot, families) in product(configs(), SHOOTS):
        plan = cilium_plan(config, shoot, families=families)
        if is_right(plan):
            assert len(CILIUM.render(plan).shoot) >= len(ALWAYS)
            rendered += 1
        else:
            refused += 1

    assert rendered > 1000
    assert refused > 1000


def test_the_default_of_new_shoots_is_valid() -> None:
    path, value = KUBE_PROXY_OFF.path, KUBE_PROXY_OFF.value
    shoot = cilium_shoot(mode="IPVS", node_local_dns=True)
    map_at(shoot.raw, *map(str, path[:-1]))[str(path[-1])] = value

    plan = cilium_plan(shoot=shoot)

    assert is_right(plan)
    assert config_of(CILIUM.render(plan))["kube-proxy-replacement"] == "true"


REPRESENTATIVE: Final[tuple[tuple[JsonObject, Shoot, tuple[str, ...]], ...]] = (
    ({}, cilium_shoot(), IPV4),
    ({"hubble": {"enabled": True}}, cilium_shoot(node_local_dns=True), BOTH),
    ({"overlay": {"enabled": False}, "hubble": {"enabled": True}}, ADVERTISED, ("IPv6",)),
    (
        {"snatToUpstreamDNS": {"enabled": True}, "snatOutOfCluster": {"enabled": True}},
        cilium_shoot(least_workers=1),
        IPV4,
    ),
)


@pytest.mark.parametrize(("fields", "shoot", "families"), REPRESENTATIVE)
def test_the_objects_follow_the_house_rules(
    fields: JsonObject, shoot: Shoot, families: tuple[str, ...]
) -> None:
    found = lint(render(fields, shoot, families).shoot, allow=EXCEPTIONS, external=EXTERNAL)

    assert not found


@pytest.mark.parametrize(("fields", "shoot", "families"), REPRESENTATIVE)
def test_the_same_plan_renders_the_same_bytes(
    fields: JsonObject, shoot: Shoot, families: tuple[str, ...]
) -> None:
    one, other = (orjson.dumps(render(fields, shoot, families).shoot) for _ in range(2))

    assert one == other


# Changes of options, and back again

CHECKSUM: Final = "checksum/configmap-cilium"


def checksums(rendered: Rendered) -> dict[str, str]:
    return {k: v for k, v in annotations_of(agent(rendered)["spec"]["template"]).items() if v}


def assert_rolls_once(before: Rendered, after: Rendered, again: Rendered) -> None:
    """Check that agents restart for the change, but not for its repetition."""
    assert checksums(before)[CHECKSUM] != checksums(after)[CHECKSUM]
    assert orjson.dumps(after.shoot) == orjson.dumps(again.shoot)


def differing(before: Rendered, after: Rendered) -> dict[str, tuple[str | None, str | None]]:
    one, other = config_of(before), config_of(after)
    return {
        key: (one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    }


def test_an_overlay_can_be_disabled_and_enabled_again() -> None:
    on, off = {"overlay": {"enabled": True}}, {"overlay": {"enabled": False}}
    before, after, back = render(on), render(off), render(on)

    assert_rolls_once(before, after, render(off))
    assert differing(before, after) == {
        "ipv4-native-routing-cidr": (None, PODS),
        "routing-mode": ("tunnel", "native"),
        "tunnel-protocol": ("vxlan", None),
    }
    assert back.shoot == before.shoot


def test_kube_proxy_can_be_disabled_and_enabled_again() -> None:
    with_proxy, without = cilium_shoot(kube_proxy=True), ADVERTISED
    before, after, back = render(shoot=with_proxy), render(shoot=without), render(shoot=with_proxy)

    assert_rolls_once(before, after, render(shoot=without))
    assert set(differing(before, after)) == {
        "enable-health-check-loadbalancer-ip",
        "enable-health-check-nodeport",
        "kube-proxy-replacement",
        "kube-proxy-replacement-healthz-bind-address",
    }
    assert back.shoot == before.shoot


def test_a_second_ip_family_can_be_added_and_removed() -> None:
    before, after, back = render(), render(families=BOTH), render()

    assert_rolls_once(before, after, render(families=BOTH))
    assert differing(before, after) == {
        "enable-ipv6": ("false", "true"),
        "k8s-require-ipv6-pod-cidr": (None, "true"),
    }
    assert back.shoot == before.shoot


def test_no_change_affects_the_ipam_mode() -> None:
    state = {"ipam": {"mode": "cluster-pool"}}

    for fields, shoot, families in REPRESENTATIVE:
        rendered = render(fields, shoot, families, state)
        assert config_of(rendered)["ipam"] == "cluster-pool"


def test_unrelated_changes_do_not_restart_agents() -> None:
    before, after = render(), render(shoot=cilium_shoot(least_workers=1))

    assert checksums(before) == checksums(after)
    assert agent(before) == agent(after)


def test_agents_and_operator_resolve_the_api_server_before_the_cluster_has_dns() -> None:
    """CoreDNS needs a network first, so host-network pods must use the node's DNS."""
    objects = named(render(shoot=ADVERTISED))

    for name in ("DaemonSet/cilium", "DaemonSet/cilium-envoy", "Deployment/cilium-operator"):
        pod = pod_of(objects[name])
        assert pod["hostNetwork"] is True
        assert pod.get("dnsPolicy", "Default") == "Default"
