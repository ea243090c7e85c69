"""The approver of client certificates on a real API server (spec 11 §3.2), and its permissions."""

import base64
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pergola.api.kinds import CLUSTER_ROLE, CSR
from pergola.api.objects import JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.kube.credentials import Certificate
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.csr_approver.controller import API_CLIENT
from pergola.testing.waiting import running, until
from tests.support.certificate_requests import private_pem, request_pem
from tests.support.certificate_site import (
    CLUSTER_ROLE_BINDING,
    KEY,
    OwnRequests,
    Site,
    certificate_site,
)
from tests.support.service_accounts import service_account_config, until_granted

ROLES = Path(__file__).parents[3] / "charts" / "resource-manager" / "rbac" / "csr-approver.yaml"
AGENTS = ("gardener.cloud:node-agents",)


@pytest.fixture
async def site(kubeconfig: Path, cluster_client: Client, namespace: str) -> AsyncIterator[Site]:
    """Yield a site without Node and Machine."""
    async with certificate_site(load(kubeconfig), cluster_client, namespace) as site:
        yield site


async def test_a_machine_becomes_a_node_whose_agent_renews_its_certificate(site: Site) -> None:
    await site.add_machine(node="")
    pem = request_pem(KEY, site.agent, AGENTS)
    async with running(site.unit()):
        key = await site.ask(API_CLIENT, user=site.bootstrap, pem=pem)
        assert await site.decision(key) == (
            "Approved",
            "RequestApproved",
            "Approving gardener-node-agent certificate CSR (all checks passed)",
        )
        issued = await until(site.client, CSR, key, lambda c: bool(c["status"].get("certificate")))
        certificate = base64.b64decode(issued["status"]["certificate"])
        agent = replace(site.config, credentials=Certificate(certificate, private_pem(KEY)))
        async with Client.connect(agent) as client:
            again = await site.send(client, API_CLIENT, pem)
        assert (await site.client.get(CSR, again))["spec"]["username"] == site.agent
        kind, _, _ = await site.decision(again)
        assert kind == "Approved"


async def test_a_bootstrap_token_is_denied_once_the_node_exists(site: Site) -> None:
    await site.add_machine()
    async with running(site.unit()):
        pem = request_pem(KEY, site.agent, AGENTS)
        # The label of the Machine exists before the Node does.
        kind, _, _ = await site.decision(await site.ask(API_CLIENT, user=site.bootstrap, pem=pem))
        assert kind == "Approved"
        await site.add_node(("Hostname", site.name))
        message = await site.denial(await site.ask(API_CLIENT, user=site.bootstrap, pem=pem))
    assert message == (
        "Denying gardener-node-agent certificate CSR (Cannot use bootstrap token since"
        f' gardener-node-agent for machine "{site.name}" is already bootstrapped)'
    )


@pytest.mark.parametrize("with_node", [False, True])
async def test_without_machines_an_agent_is_identified_by_its_node(
    site: Site, with_node: bool
) -> None:
    if with_node:
        await site.add_node(("Hostname", site.name))
    async with running(site.unit(machine_namespace=None)):
        pem = request_pem(KEY, site.agent, AGENTS)
        kind, _, _ = await site.decision(await site.ask(API_CLIENT, user=site.bootstrap, pem=pem))
    assert kind == ("Denied" if with_node else "Approved")


@pytest.mark.parametrize(
    "groups", [(), ("gardener.cloud:system:admins",), (*AGENTS, "gardener.cloud:system:admins")]
)
async def test_an_agent_and_a_bootstrap_token_are_denied_any_other_group(
    site: Site, groups: tuple[str, ...]
) -> None:
    await site.add_machine()
    pem = request_pem(KEY, site.agent, groups)
    async with running(site.unit()):
        for user in (site.agent, site.bootstrap):
            message = await site.denial(await site.ask(API_CLIENT, user=user, pem=pem))
            assert "(organization in CSR does not match node agents group)" in message


async def test_an_agent_is_denied_the_certificate_of_another_agent(site: Site) -> None:
    pem = request_pem(KEY, site.agent, AGENTS)
    async with running(site.unit()):
        missing = await site.denial(await site.ask(API_CLIENT, user=site.agent, pem=pem))
        await site.add_machine()
        other = await site.denial(await site.ask(API_CLIENT, user=f"{site.agent}-2", pem=pem))
        stranger = await site.denial(await site.ask(API_CLIENT, user="somebody", pem=pem))
    assert f'(machine "{site.name}" does not exist)' in missing
    assert f'(username "{site.agent}-2" and commonName "{site.agent}" do not match)' in other
    assert '(username "somebody" is not allowed to create CSRs for a gardener-node-agent)' in (
        stranger
    )


async def test_gardenadm_is_approved_with_a_bootstrap_token_for_the_group_of_shoots(
    site: Site,
) -> None:
    common_name, group = (
        f"gardener.cloud:gardenadm:shoot:{site.name}",
        "gardener.cloud:system:shoots",
    )
    right = request_pem(KEY, common_name, [group])
    wrong = request_pem(KEY, common_name, ["others"])
    async with running(site.unit()):
        kind, _, _ = await site.decision(await site.ask(API_CLIENT, user=site.bootstrap, pem=right))
        assert kind == "Approved"
        stranger = await site.denial(await site.ask(API_CLIENT, user="somebody", pem=right))
        others = await site.denial(await site.ask(API_CLIENT, user=site.bootstrap, pem=wrong))
    assert "is not allowed to create CSRs for a gardenadm client)" in stranger
    assert "(organization in CSR does not match nodes group)" in others


# Permissions


def roles(name: str) -> dict[str, JsonObject]:
    """Return the ClusterRoles of the chart by their cluster, under other names."""
    found: dict[str, JsonObject] = {}
    for document in parse_documents(ROLES.read_text()):
        role = document.value
        assert isinstance(role, dict)
        place = name_of(role).rpartition(":")[2]
        found[place] = {**role, "metadata": {"name": f"{name}:{place}"}}
    return found


async def grant(client: Client, namespace: str, name: str) -> None:
    """Grant the chart's permissions to the namespace's ServiceAccount `default`."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    for place, role in roles(name).items():
        await client.create(role)
        local = place == "source"
        metadata = {"name": role["metadata"]["name"], **({"namespace": namespace} if local else {})}
        await client.create(
            {
                "apiVersion": CLUSTER_ROLE.api_version,
                "kind": "RoleBinding" if local else "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": {
                    "apiGroup": CLUSTER_ROLE.group,
                    "kind": "ClusterRole",
                    "name": role["metadata"]["name"],
                },
                "subjects": [subject],
            }
        )


async def test_the_permissions_of_the_chart_are_enough(site: Site) -> None:
    await grant(site.client, site.namespace, site.name)
    refused: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        refused[method] += code == "403"

    config = await service_account_config(site.config, site.namespace)
    async with OwnRequests.connect(config, observe=observe) as restricted:
        await until_granted(site.client, Key(site.namespace, "default"))
        restricted.label, site.recorder = site.recorder.label, restricted
        await site.add_node(("Hostname", site.name))
        await site.add_machine()
        async with running(site.unit()):
            for names, decided in (([site.name], "Approved"), (["other"], "Denied")):
                kind, _, _ = await site.decision(await site.ask(dns_names=names))
                assert kind == decided
            agent = request_pem(KEY, site.agent, AGENTS)
            await site.denial(await site.ask(API_CLIENT, user=site.bootstrap, pem=agent))
            await site.event(site.name)
    assert refused.total() == 0
    for gvk in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        for place in roles(site.name):
            with suppress(NotFound):
                await site.client.delete(gvk, Key("", f"{site.name}:{place}"))
