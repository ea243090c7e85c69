"""NetworkPolicies of Services on a real API server: spec 11 §4.13, in its order.

Unit tests cover the content of the policies, which pure functions decide. These tests cover which
policies exist, when, and by which writes.
"""

import secrets
from collections.abc import Callable

import pytest

from pergola.api.kinds import (
    GATEWAY,
    INGRESS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy import Settings, network_policy
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, settled, until, until_gone
from tests.support.policy_site import (
    PEER,
    SITE,
    L,
    PolicySite,
    X,
    chosen,
    gateway,
    gateway_pair,
    install_istio,
    pair,
    peer_pair,
    port,
    ports_of,
    until_served,
    virtual_service,
    written,
)

# 1


async def test_a_service_gets_a_pair_of_policies_for_each_port(site: PolicySite) -> None:
    await site.serve(ports=[port(80, 5678), port(53, "testport", "UDP")])
    await site.start()
    await site.names(*pair("web-tcp-5678"), *pair("web-udp-testport"))
    live = await site.client.get(NETWORK_POLICY, site.key("ingress-to-web-udp-testport"))
    assert live["spec"] == {
        "podSelector": {"matchLabels": {"app": "web"}},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [{"podSelector": {"matchLabels": {f"{L}to-web-udp-testport": "allowed"}}}],
                "ports": [{"protocol": "UDP", "port": "testport"}],
            }
        ],
    }
    live = await site.client.get(NETWORK_POLICY, site.key("egress-to-web-tcp-5678"))
    assert live["spec"] == {
        "podSelector": {"matchLabels": {f"{L}to-web-tcp-5678": "allowed"}},
        "policyTypes": ["Egress"],
        "egress": [
            {
                "to": [{"podSelector": {"matchLabels": {"app": "web"}}}],
                "ports": [{"protocol": "TCP", "port": 5678}],
            }
        ],
    }


# 2


async def test_a_service_without_selector_has_no_policies(site: PolicySite) -> None:
    await site.start()
    await site.serve(selector=None)
    await site.serve("other", selector={})
    assert await site.rest() == []
    await site.names()


async def test_policies_follow_the_label_of_the_namespace(site: PolicySite) -> None:
    await site.label(site.namespace, {SITE: None})
    await site.start()
    await site.serve()
    assert await site.rest() == []
    await site.label(site.namespace, site.handled)
    await site.names(*pair())
    await site.label(site.namespace, {SITE: None})
    await site.names()


# 3


async def test_a_change_of_ports_writes_only_the_affected_policies(site: PolicySite) -> None:
    await site.start()
    await site.serve(ports=[port(80, 80), port(81, 81)])
    await site.names(*pair("web-tcp-80"), *pair("web-tcp-81"))
    await site.rest()
    await site.change(ports=[port(81, 81), port(82, 82)])
    await site.names(*pair("web-tcp-81"), *pair("web-tcp-82"))
    assert sorted(await site.rest()) == sorted(
        written(site, "create", pair("web-tcp-82")) + written(site, "delete", pair("web-tcp-80"))
    )


# 4


@pytest.mark.parametrize("how", ["deleted", "without selector"])
async def test_a_service_that_is_deleted_or_loses_its_selector_loses_all_policies(
    site: PolicySite, how: str, other: str
) -> None:
    await site.label(other, {PEER: other})
    await site.start()
    await site.serve(
        annotations={
            "namespace_selectors": chosen(team=other),
            "from_x_allowed_ports": [{"port": 1}],
            "from_world_to_ports": [],
        }
    )
    await site.names(
        *pair(),
        *peer_pair(site, other),
        *pair("web-tcp-1-via-x"),
        f"ingress-to-web-tcp-1-via-x-from-{other}",
        f"{other}/egress-to-{site.namespace}-web-tcp-1-via-x",
        "ingress-to-web-from-world",
    )
    if how == "deleted":
        await site.client.delete(SERVICE, site.key("web"))
    else:
        await site.change(selector=None)
    await site.names()


async def test_a_service_under_deletion_loses_its_policies(site: PolicySite) -> None:
    await site.start()
    await site.serve()
    await site.names(*pair())
    finalizers = {"metadata": {"finalizers": ["test.pergola/holds"]}}
    await site.client.patch(SERVICE, site.key("web"), finalizers)
    await site.client.delete(SERVICE, site.key("web"))
    await site.names()
    await site.client.patch(SERVICE, site.key("web"), {"metadata": {"finalizers": None}})


# 5


@pytest.mark.parametrize("namespace", ["", "no-such-namespace"])
async def test_a_policy_whose_service_does_not_exist_is_deleted(
    site: PolicySite, namespace: str
) -> None:
    labels = {f"{L}service-name": "gone", f"{L}service-namespace": namespace or site.namespace}
    await site.put_policy("before", labels)
    await site.start()
    await until_gone(site.client, NETWORK_POLICY, site.key("before"))
    await site.put_policy("later", labels)
    await until_gone(site.client, NETWORK_POLICY, site.key("later"))


# 6


async def test_peers_follow_the_labels_of_namespaces(site: PolicySite, other: str) -> None:
    await site.start()
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    await site.names(*pair())
    await site.label(other, {PEER: other})
    await site.names(*pair(), *peer_pair(site, other))
    await site.rest()
    await site.label(other, {PEER: None})
    await site.names(*pair())
    assert sorted(await site.rest()) == written(site, "delete", peer_pair(site, other))
    name = f"new-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": {PEER: other}}
    await site.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    await site.names(*pair(), *peer_pair(site, name))


# 7


async def test_a_namespace_alias_is_in_labels_but_not_in_names(
    site: PolicySite, other: str
) -> None:
    await site.label(other, {PEER: other})
    await site.start()
    await site.serve(
        annotations={
            "namespace_selectors": chosen(team=other),
            "pod_label_selector_namespace_alias": "all-webs",
        }
    )
    await site.names(*pair(), *peer_pair(site, other))
    live = await site.client.get(NETWORK_POLICY, Key(other, f"egress-to-{site.namespace}-{X}"))
    label = f"{L}to-all-webs-{X}"
    assert live["spec"]["podSelector"] == {"matchLabels": {label: "allowed"}}
    await site.annotate(pod_label_selector_namespace_alias=None)
    label = f"{L}to-{site.namespace}-{X}"
    key = Key(other, f"egress-to-{site.namespace}-{X}")
    selector = {"matchLabels": {label: "allowed"}}
    await until(site.client, NETWORK_POLICY, key, lambda p: p["spec"]["podSelector"] == selector)
    await site.names(*pair(), *peer_pair(site, other))


# 8


async def test_aliases_have_separate_policies_and_change_separately(
    site: PolicySite,
) -> None:
    def via(alias: str, *ports: int) -> list[str]:
        return [name for p in ports for name in pair(f"web-tcp-{p}-via-{alias}")]

    def ports(*numbers: int) -> list[JsonObject]:
        return [{"port": number, "protocol": "TCP"} for number in numbers]

    await site.start()
    annotations = {"from_x_allowed_ports": ports(1, 2), "from_y_allowed_ports": ports(3, 4)}
    await site.serve(annotations=annotations, ports=[port(443, 8443)])
    await site.names(*pair(), *via("x", 1, 2), *via("y", 3, 4))
    await site.rest()
    await site.annotate(from_y_allowed_ports=ports(4, 5))
    await site.names(*pair(), *via("x", 1, 2), *via("y", 4, 5))
    assert sorted(await site.rest()) == sorted(
        written(site, "create", via("y", 5)) + written(site, "delete", via("y", 3))
    )
    await site.annotate(from_x_allowed_ports=None, from_y_allowed_ports=None)
    await site.names(*pair())


# 9


async def test_from_world_is_one_policy_without_from(site: PolicySite) -> None:
    await site.start()
    await site.serve(annotations={"from_world_to_ports": [{"port": "10250", "protocol": "TCP"}]})
    name = "ingress-to-web-from-world"
    await site.names(*pair(), name)
    live = await site.client.get(NETWORK_POLICY, site.key(name))
    assert live["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 10250}]}]
    await site.annotate(from_world_to_ports=[])
    live = await site.policy(name, lambda policy: ports_of(policy) is None)
    assert live["spec"]["ingress"] == [{}]
    await site.annotate(from_world_to_ports=None)
    await site.names(*pair())


# 10


async def test_ingresses_open_the_ports_they_expose_to_the_ingress_controller(
    site: PolicySite, other: str
) -> None:
    def exposed(base: str) -> list[str]:
        return [
            f"ingress-to-{base}-from-ingress-controller",
            f"{other}/egress-to-{site.namespace}-{base}-from-ingress-controller",
        ]

    await site.start(ingress_controller=(other, {"matchLabels": {"app": "nginx"}}))
    await site.serve(ports=[port(1234, 5678)])
    await site.put_ingress(1234)
    await site.names(*pair("web-tcp-5678"), *exposed("web-tcp-5678"))
    live = await site.client.get(NETWORK_POLICY, site.key(exposed("web-tcp-5678")[0]))
    assert ports_of(live) == [{"protocol": "TCP", "port": 5678}]
    await site.change(ports=[port(1234, 8765)])
    await site.names(*pair("web-tcp-8765"), *exposed("web-tcp-8765"))
    await site.client.delete(INGRESS, site.key("web"))
    await site.names(*pair("web-tcp-8765"))
    await site.put_ingress(1234)
    await site.names(*pair("web-tcp-8765"), *exposed("web-tcp-8765"))
    await site.change(selector=None)
    await site.names()
    await site.change(selector={"app": "web"})
    await site.names(*pair("web-tcp-8765"), *exposed("web-tcp-8765"))
    await site.client.delete(SERVICE, site.key("web"))
    await site.names()


async def test_an_ingress_of_an_unknown_port_opens_nothing(site: PolicySite, other: str) -> None:
    await site.start(ingress_controller=(other, {"matchLabels": {"app": "nginx"}}))
    await site.serve()
    await site.put_ingress(1)
    await site.names(*pair())
    await site.rest()
    assert await site.rest() == []


async def test_an_ingress_controller_is_admitted_once_its_namespace_exists(
    site: PolicySite,
) -> None:
    name = f"late-{secrets.token_hex(4)}"
    await site.start(ingress_controller=(name, {"matchLabels": {"app": "nginx"}}))
    await site.serve()
    await site.put_ingress(443)
    await site.names(*pair())
    metadata = {"name": name}
    await site.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    await site.names(
        *pair(),
        f"ingress-to-{X}-from-ingress-controller",
        f"{name}/egress-to-{site.namespace}-{X}-from-ingress-controller",
    )


# 11


async def test_nothing_is_created_in_a_terminating_namespace(site: PolicySite) -> None:
    await site.start()
    await site.serve(selector=None)
    await site.client.delete(NAMESPACE, Key("", site.namespace))
    await site.rest()
    await site.change(selector={"app": "web"})
    assert await site.rest() == []
    await site.names()


async def test_policies_in_a_terminating_namespace_are_deleted(site: PolicySite) -> None:
    await site.start()
    await site.serve()
    await site.names(*pair())
    await site.rest()
    await site.client.delete(NAMESPACE, Key("", site.namespace))
    await site.names()
    assert sorted(await site.rest()) == written(site, "delete", pair())


async def test_a_terminating_namespace_is_not_a_peer(site: PolicySite, other: str) -> None:
    await site.label(other, {PEER: other})
    await site.start()
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    await site.names(*pair(), *peer_pair(site, other))
    await site.client.delete(NAMESPACE, Key("", other))
    await site.names(*pair())
    await site.change(ports=[port(80, 80)])
    await site.names(*pair("web-tcp-80"))


# 12


def has_spec(spec: JsonObject) -> Callable[[JsonObject], bool]:
    return lambda policy: bool(policy["spec"] == spec)


async def test_an_edited_or_deleted_policy_is_restored(site: PolicySite) -> None:
    await site.start()
    await site.serve(annotations={"from_world_to_ports": []})
    names = [*pair(), "ingress-to-web-from-world"]
    await site.names(*names)
    await site.rest()
    for name in names:
        right = await site.client.get(NETWORK_POLICY, site.key(name))
        edit = {
            "metadata": {
                "annotations": {"gardener.cloud/description": None, "own": "mark"},
                "labels": {"own": "mark"},
            },
            "spec": {"podSelector": {"matchLabels": {"more": "label"}}, "policyTypes": ["Egress"]},
        }
        await site.client.patch(NETWORK_POLICY, site.key(name), edit)
        live = await site.policy(name, has_spec(right["spec"]))
        assert live["metadata"]["labels"] == right["metadata"]["labels"] | {"own": "mark"}
        annotations = right["metadata"]["annotations"] | {"own": "mark"}
        assert live["metadata"]["annotations"] == annotations
        assert await site.rest() == written(site, "patch", [name])
    for name in names:
        await site.client.delete(NETWORK_POLICY, site.key(name))
    await site.names(*names)
    assert sorted(await site.rest()) == written(site, "create", names)


async def test_nothing_is_written_without_a_change(site: PolicySite, other: str) -> None:
    await site.label(other, {PEER: other})
    await site.serve(
        annotations={
            "namespace_selectors": [
                {"matchExpressions": [{"key": PEER, "operator": "In", "values": [other]}]}
            ],
            "networkpolicy_pod_selector": {"matchLabels": {"a": "b"}, "matchExpressions": []},
            "from_x_allowed_ports": [{"port": 1, "endPort": 5}, {"port": "named"}],
            "from_world_to_ports": [{"protocol": "UDP"}],
        },
        ports=[port(53, 53), port(53, 53, "UDP")],
    )
    # The first one writes, and the second one finds nothing to change.
    await site.start()
    await site.rest()
    second = network_policy(
        site.recorder,
        Settings(
            namespace_selectors=({"matchLabels": site.handled},), only_for_matching_pods=False
        ),
        metrics=Metrics(),
    )
    async with running(second):
        await settled(second, site.client)
        await site.label(other, {"unrelated": "label"})
        await site.label(site.namespace, {"unrelated": "label"})
        await site.client.patch(SERVICE, site.key("web"), {"metadata": {"labels": {"a": "b"}}})
        await settled(second, site.client)
        assert await site.rest() == []


# 13


async def test_a_label_key_that_is_too_long_is_shortened_and_reported(site: PolicySite) -> None:
    name = "this-is-a-very-long-svc-name-which-will-exceed-max-length"
    await site.start()
    await site.serve(name, ports=[port(80, 5678)])
    await site.names(*pair(f"{name}-tcp-5678"))
    live = await site.client.get(NETWORK_POLICY, site.key(f"egress-to-{name}-tcp-5678"))
    short = f"{L}to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268"
    assert live["spec"]["podSelector"] == {"matchLabels": {short: "allowed"}}
    events = await site.reported()
    assert [(e["type"], e["reason"]) for e in events] == [
        ("Warning", "PodLabelSelectorKey(s)TooLong")
    ]
    assert events[0]["regarding"]["name"] == name
    assert f"{L}to-{name}-tcp-5678" in events[0]["note"]
    assert short in events[0]["note"]
    await site.rest()
    before = site.reconciled
    assert await site.rest() == []
    assert site.reconciled == before


# 14


async def test_only_for_matching_pods_policies_exist_as_long_as_such_pods_do(
    site: PolicySite, other: str
) -> None:
    await site.label(other, {PEER: other})
    await site.start(only_for_matching_pods=True, grace=0.0)
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    assert await site.rest() == []
    label, peer_label = f"to-{X}", f"to-{site.namespace}-{X}"
    await site.put_pod("caller", site.namespace, label)
    await site.names(*pair())
    await site.put_pod("caller", other, peer_label)
    await site.names(*pair(), *peer_pair(site, other))
    await site.rest()
    await site.put_pod("second", site.namespace, label)
    await site.delete_pod("caller", site.namespace)
    assert await site.rest() == []
    await site.delete_pod("second", site.namespace)
    await site.names(*peer_pair(site, other))
    unlabelled = {"metadata": {"labels": {L + peer_label: None}}}
    await site.client.patch(POD, Key(other, "caller"), unlabelled)
    await site.names()


async def test_only_for_matching_pods_nothing_is_written_while_a_pod_is_replaced(
    site: PolicySite,
) -> None:
    await site.start(only_for_matching_pods=True)
    await site.serve()
    for _ in range(2):
        await site.put_pod("caller", site.namespace, f"to-{X}")
        await site.names(*pair())
        await site.rest()
        await site.delete_pod("caller", site.namespace)
        assert await site.rest() == []
    await site.names(*pair())


async def test_only_for_matching_pods_a_new_process_keeps_the_policies_of_present_pods(
    site: PolicySite, other: str
) -> None:
    await site.label(other, {PEER: other})
    await site.start(only_for_matching_pods=True)
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    await site.put_pod("leaving", site.namespace, f"to-{X}")
    await site.put_pod("staying", other, f"to-{site.namespace}-{X}")
    await site.names(*pair(), *peer_pair(site, other))
    await site.stop()
    await site.delete_pod("leaving", site.namespace)
    async with PolicySite(site.client, site.recorder, site.namespace) as again:
        site.recorder.taken()
        unit = await again.start(only_for_matching_pods=True)
        await again.names(*peer_pair(again, other))
        await settled(unit, site.client)
        left = await site.client.list(NETWORK_POLICY, site.namespace)
        assert [Key.of(policy).name for policy in left] == [f"ingress-to-{X}-from-{other}"]


async def test_only_for_matching_pods_the_world_needs_no_pod(site: PolicySite, other: str) -> None:
    await site.start(
        only_for_matching_pods=True, ingress_controller=(other, {"matchLabels": {"app": "nginx"}})
    )
    await site.put_ingress(443)
    await site.serve(annotations={"from_world_to_ports": []})
    await site.names(
        "ingress-to-web-from-world",
        f"ingress-to-{X}-from-ingress-controller",
        f"{other}/egress-to-{site.namespace}-{X}-from-ingress-controller",
    )


async def test_only_for_matching_pods_a_pod_triggers_only_the_services_it_may_call(
    site: PolicySite, other: str
) -> None:
    await site.start(only_for_matching_pods=True)
    for number in range(5):
        await site.serve(f"web{number}")
    await site.rest()
    before = site.reconciled
    await site.put_pod("stranger", site.namespace, "to-somebody-else-tcp-1")
    await site.put_pod("elsewhere", other, "to-web1-tcp-8443")
    await site.rest()
    assert site.reconciled == before
    await site.put_pod("caller", site.namespace, "to-web1-tcp-8443")
    await site.names(*pair("web1-tcp-8443"))
    await site.rest()
    assert site.reconciled > before


async def test_a_change_of_the_mode_takes_effect_at_restart(site: PolicySite) -> None:
    await site.serve()
    await site.start()
    await site.names(*pair())
    await site.stop()
    async with PolicySite(site.client, site.recorder, site.namespace) as again:
        await again.start(only_for_matching_pods=True)
        await again.names()


# 15


async def test_a_virtual_service_opens_a_service_to_the_pods_of_its_gateways(
    site: PolicySite, other: str
) -> None:
    # The controller starts before Istio is installed.
    unit = await site.start()
    await site.serve()
    await site.names(*pair())
    await install_istio(site.client)
    await until_served(unit)
    await site.put_pod("gateway", other, istio=other)
    await site.client.create(gateway(site.namespace, pods=other))
    await site.client.create(virtual_service(site, "web"))
    await site.names(*pair(), *gateway_pair(site, other))
    live = await site.client.get(
        NETWORK_POLICY, Key(other, f"egress-to-{site.namespace}-{X}-from-istio")
    )
    assert live["spec"]["podSelector"] == {"matchLabels": {"istio": other}}
    await site.client.delete(VIRTUAL_SERVICE, site.key("web"))
    await site.names(*pair())


async def test_a_missing_gateway_or_mesh_does_not_block_others(
    site: PolicySite, other: str
) -> None:
    await install_istio(site.client)
    await site.client.create(gateway(other, pods=other))
    await site.put_pod("gateway", other, istio=other)
    await site.client.create(virtual_service(site, "mesh", "missing", f"{other}/web"))
    await site.start()
    await site.serve()
    await site.names(*pair(), *gateway_pair(site, other))


async def test_changes_of_gateways_and_their_pods_are_followed(
    site: PolicySite, other: str
) -> None:
    await install_istio(site.client)
    await site.start()
    await site.serve()
    await site.client.create(virtual_service(site, "web"))
    await site.names(*pair())
    await site.client.create(gateway(site.namespace, pods=other))
    await site.rest()
    await site.names(*pair())
    await site.put_pod("gateway", other, istio=other)
    await site.names(*pair(), *gateway_pair(site, other))
    await site.delete_pod("gateway", other)
    await site.names(*pair())
    await site.put_pod("gateway", site.namespace, istio=other)
    within = [f"ingress-to-{X}-from-istio", f"egress-to-{X}-from-istio"]
    await site.names(*pair(), *within)
    selector = {"spec": {"selector": {"istio": "somebody-else"}}}
    await site.client.patch(GATEWAY, site.key("web"), selector)
    await site.names(*pair())


# 16


async def test_policies_without_ownership_labels_are_never_touched(site: PolicySite) -> None:
    for name in ("deny-all", f"ingress-to-{X}"):
        await site.put_policy(name, {"some": "label"})
    await site.put_policy("half", {f"{L}service-name": "web"})
    await site.put_policy("empty", {f"{L}service-name": "", f"{L}service-namespace": ""})
    names = ("deny-all", f"ingress-to-{X}", "half", "empty")
    before = [await site.client.get(NETWORK_POLICY, site.key(name)) for name in names]
    await site.start()
    await site.serve()
    await site.names(f"egress-to-{X}")
    await site.client.delete(SERVICE, site.key("web"))
    await site.names()
    assert [await site.client.get(NETWORK_POLICY, site.key(name)) for name in names] == before
