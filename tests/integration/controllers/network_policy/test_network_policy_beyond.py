"""NetworkPolicies beyond the original, on a real API server: spec 11 §9 and Beyond."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from pergola.api.kinds import NAMESPACE, NETWORK_POLICY, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of
from pergola.api.resource_manager_config import configuration_from
from pergola.controllers.network_policy.apply import Writer, plan
from pergola.controllers.network_policy.desired import desired, intents
from pergola.controllers.network_policy.seen import keep_policy
from pergola.controllers.network_policy.service import read_service
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.runtime.caching.caches import Caches
from pergola.sandbox import Sandbox
from pergola.testing.waiting import until
from pergola.testing.world import RecordingClient
from tests.support.policy_site import (
    PEER,
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
    virtual_service,
    written,
)
from tests.support.service_accounts import service_account_config, until_allowed

ROOT = Path(__file__).parents[4]
ROLES = ROOT / "charts" / "resource-manager" / "rbac" / "network-policy.yaml"
EXAMPLE = ROOT / "examples" / "network-policy"
QUOTA = GroupVersionKind("", "v1", "ResourceQuota")
RBAC = "rbac.authorization.k8s.io"


async def test_a_foreign_policy_is_reported_and_replaced_once_it_is_deleted(
    site: PolicySite,
) -> None:
    await site.put_policy(f"ingress-to-{X}", {})
    await site.start()
    await site.serve()
    note = await site.warning("NetworkPolicyNameTaken")
    assert f"NetworkPolicy {site.namespace}/ingress-to-{X} is needed for this Service" in note
    await site.client.delete(NETWORK_POLICY, site.key(f"ingress-to-{X}"))
    await site.names(*pair())


async def test_two_services_that_need_the_same_name_do_not_fight(
    site: PolicySite, other: str
) -> None:
    # `<a>-web` in `other`, and `web` in `<a>` with the peer `other`: both need a policy of one name
    # in `other`.
    await site.label(other, {PEER: other, **site.handled})
    await site.start()
    first = f"{site.namespace}-web"
    await site.serve(first, namespace=other)
    contested = Key(other, f"egress-to-{site.namespace}-{X}")
    await until(site.client, NETWORK_POLICY, contested, lambda _: True)
    await site.rest()
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    note = await site.warning("NetworkPolicyNameTaken")
    assert f"it belongs to the Service {other}/{first}; rename one of the Services" in note
    ingress, egress = peer_pair(site, other)
    await site.names(*pair(), ingress)
    live = await site.client.get(NETWORK_POLICY, contested)
    assert labels_of(live)[f"{L}service-name"] == first
    # The loser waits for the name, and takes it once it is free.
    await site.client.delete(SERVICE, Key(other, first))
    await site.names(*pair(), ingress, egress)


async def test_an_invalid_annotation_is_reported_and_closes_no_connection(
    site: PolicySite, other: str
) -> None:
    await site.label(other, {PEER: other})
    await site.start()
    await site.serve(
        annotations={
            "namespace_selectors": chosen(team=other),
            "from_world_to_ports": [{"port": 1}],
        }
    )
    world = "ingress-to-web-from-world"
    await site.names(*pair(), *peer_pair(site, other), world)
    await site.rest()
    await site.annotate(namespace_selectors="[{", from_x_allowed_ports=[{"port": 2}])
    via = pair("web-tcp-2-via-x")
    await site.names(*pair(), *peer_pair(site, other), world, *via)
    assert sorted(await site.rest()) == written(site, "create", via)
    note = await site.warning("NetworkPolicyAnnotationMalformed")
    assert note.startswith(f"annotation {L}namespace-selectors: must be JSON of a list of label")
    before = site.reconciled
    assert await site.rest() == []
    assert site.reconciled == before
    await site.annotate(namespace_selectors=None)
    await site.names(*pair(), world, *via)


async def test_an_event_of_a_namespace_triggers_only_the_affected_services(
    site: PolicySite, other: str
) -> None:
    await site.label(other, {PEER: "before"})
    await site.start()
    await site.serve("inside")
    await site.serve("chooses", annotations={"namespace_selectors": chosen(team=other)})
    await site.serve("ignores", annotations={"namespace_selectors": chosen(team="nobody")})
    await site.rest()
    before = site.reconciled
    await site.label(other, {"unrelated": "label"})
    await site.label(site.namespace, {"unrelated": "label"})
    await site.rest()
    assert site.reconciled == before
    await site.label(other, {PEER: other})
    await site.rest()
    assert site.reconciled > before


async def test_policies_may_select_other_pods_than_the_service(
    site: PolicySite,
) -> None:
    await site.start()
    selector = {"matchLabels": {"component": "web"}}
    await site.serve(annotations={"networkpolicy_pod_selector": selector})
    await site.names(*pair())
    live = await site.client.get(NETWORK_POLICY, site.key(f"ingress-to-{X}"))
    assert live["spec"]["podSelector"] == selector


@pytest.mark.parametrize("only_for_matching_pods", [False, True])
async def test_an_instance_for_some_namespaces_reports_those_out_of_its_reach(
    site: PolicySite, other: str, *, only_for_matching_pods: bool
) -> None:
    await site.label(other, {PEER: other})
    theirs = {f"{L}service-name": "gone", f"{L}service-namespace": other}
    await site.put_policy("of-another-instance", theirs)
    await site.serve(annotations={"namespace_selectors": chosen(team=other)})
    await site.put_pod("caller", site.namespace, f"to-{X}")
    await site.start(namespaces=(site.namespace,), only_for_matching_pods=only_for_matching_pods)
    # The pods of the other namespace are unknown.
    await site.names(*pair(), f"ingress-to-{X}-from-{other}")
    note = await site.warning("NetworkPolicyNamespaceNotWatched")
    assert note.startswith(f"no NetworkPolicies are written to {other}")
    assert await site.rest() == []
    await site.client.get(NETWORK_POLICY, site.key("of-another-instance"))


async def test_a_policy_that_the_api_server_refuses_is_reported_and_retried(
    site: PolicySite,
) -> None:
    hard = {"count/networkpolicies.networking.k8s.io": "0"}
    metadata = {"name": "none", "namespace": site.namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    await site.client.create({**quota, "spec": {"hard": hard}})
    # No quota controller runs here; without a status, the quota rejects everything without a
    # reason.
    status = {"status": {"hard": hard, "used": hard}}
    await site.client.patch(QUOTA, site.key("none"), status, subresource="status")
    await until_refused(site)
    await site.start()
    await site.serve()
    note = await site.warning("NetworkPolicyRejected")
    assert note.startswith(f"the API server refused NetworkPolicy {site.namespace}/")
    assert "exceeded quota: none" in note
    await site.client.delete(QUOTA, site.key("none"))
    await site.names(*pair())


async def until_refused(site: PolicySite) -> None:
    """Wait until the quota is effective: its admission learns of it by watching."""
    policy = {"apiVersion": NETWORK_POLICY.api_version, "kind": NETWORK_POLICY.kind}
    metadata = {"name": "attempt", "namespace": site.namespace}
    attempt = {**policy, "metadata": metadata, "spec": {"podSelector": {}}}
    while True:
        try:
            await site.client.create(attempt, dry_run=True)
        except Forbidden as error:
            if "exceeded quota" in str(error):
                return
        await asyncio.sleep(0.05)


async def test_a_namespace_that_terminates_during_a_write_is_not_an_error(
    site: PolicySite, other: str
) -> None:
    await site.serve()
    view = read_service(await site.client.get(SERVICE, site.key("web")))
    await site.client.delete(NAMESPACE, Key("", other))
    intended = desired(view, intents(view, [site.namespace, other, "no-such-namespace"]))
    writer = Writer(site.client, Caches(site.client, NETWORK_POLICY, keep_policy))
    assert await writer.apply(view.key, plan(intended, {})) == []
    missing = f"ingress-to-{X}-from-no-such-namespace"
    await site.names(*pair(), f"ingress-to-{X}-from-{other}", missing)


async def test_a_policy_with_a_finalizer_is_deleted_only_once(site: PolicySite) -> None:
    await site.start()
    await site.serve(ports=[port(443, 8443), port(80, 80)])
    await site.names(*pair(), *pair("web-tcp-80"))
    held = site.key(f"ingress-to-{X}")
    finalizers = {"metadata": {"finalizers": ["test.pergola/holds"]}}
    await site.client.patch(NETWORK_POLICY, held, finalizers)
    await site.rest()
    await site.change(ports=[port(80, 80)])
    await site.names(held.name, *pair("web-tcp-80"))
    await site.annotate(from_world_to_ports=[])
    await site.names(held.name, *pair("web-tcp-80"), "ingress-to-web-from-world")
    assert sorted(await site.rest()) == sorted(
        written(site, "delete", pair()) + written(site, "create", ["ingress-to-web-from-world"])
    )
    await site.client.patch(NETWORK_POLICY, held, {"metadata": {"finalizers": None}})
    await site.names(*pair("web-tcp-80"), "ingress-to-web-from-world")


# Permissions, and the example


def documents(path: Path) -> list[JsonObject]:
    """Return the objects of a file."""
    found = parse_documents(path.read_text())
    return [document.value for document in found if isinstance(document.value, dict)]


async def test_the_permissions_of_the_manifest_are_enough_for_everything(
    site: PolicySite, other: str, lone_sandbox: Sandbox
) -> None:
    (role,) = documents(ROLES)
    name = f"{role['metadata']['name']}:{site.namespace}"
    await site.client.create({**role, "metadata": {"name": name}})
    await site.client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": "default", "namespace": site.namespace}
            ],
        }
    )
    await install_istio(site.client)
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    config = await service_account_config(load(lone_sandbox.kubeconfig), site.namespace)
    async with Client.connect(config, observe=observe) as client:
        await until_allowed(client, SERVICE)
        answers.clear()
        await site.start(
            client,
            ingress_controller=(other, {"matchLabels": {"app": "nginx"}}),
            only_for_matching_pods=True,
        )
        await site.put_pod("caller", site.namespace, f"to-{X}")
        await site.put_pod("gateway", other, istio=other)
        await site.client.create(gateway(site.namespace, pods=other))
        await site.client.create(virtual_service(site, "web"))
        await site.put_ingress(443)
        await site.serve(annotations={"from_world_to_ports": "["})
        await site.names(
            *pair(),
            f"ingress-to-{X}-from-ingress-controller",
            f"{other}/egress-to-{site.namespace}-{X}-from-ingress-controller",
            *gateway_pair(site, other),
        )
        await site.warning("NetworkPolicyAnnotationMalformed")
        edit = {"spec": {"policyTypes": ["Egress"]}}
        await site.client.patch(NETWORK_POLICY, site.key(f"ingress-to-{X}"), edit)
        key = site.key(f"ingress-to-{X}")
        await until(
            site.client, NETWORK_POLICY, key, lambda p: p["spec"]["policyTypes"] == ["Ingress"]
        )
        await site.client.delete(SERVICE, site.key("web"))
        await site.names()
        await site.stop()
        with pytest.raises(Forbidden):
            await client.update(await site.client.get(SERVICE, Key("default", "kubernetes")))
    assert answers["403"] == 1


async def test_the_example_does_what_its_readme_says(
    lone_client: Client, recorder: RecordingClient
) -> None:
    for obj in documents(EXAMPLE / "manifests.yaml"):
        await lone_client.create(obj)
    (config,) = documents(EXAMPLE / "config.yaml")
    configuration, warnings = configuration_from(config)
    assert warnings == []
    chosen_by_file = configuration.controllers.network_policy
    assert chosen_by_file.enabled
    assert not chosen_by_file.only_for_matching_pods
    (selector,) = chosen_by_file.namespace_selectors
    site = PolicySite(lone_client, recorder, "demo-shop")
    site.handled = dict(selector.match_labels)
    readme = (EXAMPLE / "README.md").read_text()
    async with site:
        await site.start()
        await site.names(
            *pair("orders-tcp-8443"),
            *peer_pair(site, "demo-office", "orders-tcp-8443"),
            *pair("orders-tcp-9090-via-all-scrape-targets"),
            *peer_pair(site, "demo-office", "orders-tcp-9090-via-all-scrape-targets"),
            "ingress-to-orders-from-world",
        )
        for policy in await lone_client.list(NETWORK_POLICY):
            labels = policy["spec"]["podSelector"].get("matchLabels", {})
            if labels_of(policy).get(f"{L}service-name") == "orders" and "app" not in labels:
                assert f"`{next(iter(labels))}`" in readme
    for name in ("demo-shop", "demo-office"):
        await lone_client.delete(NAMESPACE, Key("", name))
