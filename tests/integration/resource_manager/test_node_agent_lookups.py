"""Lookups of the node-agent authorizer in real clusters: spec 12 §16."""

import base64
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from pergola.api.kinds import NODE, SECRET
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import dump
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    GROUP,
    SECRET_NAME_LABEL,
    USER_PREFIX,
    Attributes,
    decide,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import (
    POOL_LABEL,
    ClusterLookups,
)


class Pool:
    """A node, and two Secrets that its agent may try to read, all with unique names."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.node = f"node-{name}"
        self.configuration = f"osc-{name}"
        self.foreign = f"foreign-{name}"
        self.lookups = ClusterLookups(client, client)

    async def may_read(self, secret: str) -> bool:
        request = Attributes(
            user=f"{USER_PREFIX}{self.node}",
            groups=(GROUP,),
            verb="get",
            resource="secrets",
            namespace="kube-system",
            name=secret,
        )
        return (await decide(request, self.lookups)).answer == "allow"

    async def join(self, labels: dict[str, str]) -> None:
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": self.node, "labels": labels},
            }
        )


@pytest.fixture
async def pool(cluster_client: Client, namespace: str) -> AsyncIterator[Pool]:
    own = Pool(cluster_client, namespace[-30:].lstrip("-"))
    osc = {"spec": {"files": [{"content": {"secretRef": {"name": f"named-{own.name}"}}}]}}
    secrets: list[tuple[str, dict[str, str], JsonObject]] = [
        (own.configuration, {POOL_LABEL: own.name}, osc),
        (own.foreign, {}, {}),
    ]
    for name, labels, content in secrets:
        await cluster_client.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
                "data": {"osc.yaml": base64.b64encode(dump(content).encode()).decode()},
            }
        )
    yield own
    for name in (own.configuration, own.foreign):
        await cluster_client.delete(SECRET, Key("kube-system", name))
    with suppress(NotFound):
        await cluster_client.delete(NODE, Key("", own.node))


async def test_a_joining_node_may_read_configurations_of_pools(pool: Pool) -> None:
    assert await pool.may_read(pool.configuration)
    assert await pool.may_read(f"named-{pool.name}")
    assert not await pool.may_read(pool.foreign)


async def test_a_node_may_read_its_configuration_and_the_secrets_named_in_it(pool: Pool) -> None:
    await pool.join({SECRET_NAME_LABEL: pool.configuration})
    assert await pool.may_read(pool.configuration)
    assert await pool.may_read(f"named-{pool.name}")
    assert not await pool.may_read(pool.foreign)


async def test_a_node_cannot_read_a_secret_by_naming_it_as_its_configuration(
    pool: Pool,
) -> None:
    await pool.join({SECRET_NAME_LABEL: pool.foreign})
    assert not await pool.may_read(pool.foreign)
    assert not await pool.may_read(pool.configuration)


async def test_missing_objects_belong_to_no_agent(pool: Pool) -> None:
    assert await pool.lookups.requester("gone") is None
    assert await pool.lookups.node_of_pod(Key("kube-system", "gone")) is None
    agent = await pool.lookups.agent(pool.node)
    assert (agent.node, agent.node_labels) == ("", {})
