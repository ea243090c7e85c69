"""The cluster identity of spec 10 §3.3, in a separate cluster: the ConfigMap has a fixed name."""

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.resource_manager.identity import IdentityError, cluster_identity
from tests.support.documented.symptoms import symptom

KEY = Key("kube-system", "cluster-identity")


async def test_the_identity_of_a_cluster_is_read_from_its_config_map(second_client: Client) -> None:
    client = second_client
    with pytest.raises(IdentityError, match=symptom("The cluster has no identity")):
        await cluster_identity(client, "<cluster>")
    assert await cluster_identity(client, "<default>") == ""

    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    }
    await client.create({**config_map, "data": {"other": "x"}})
    with pytest.raises(IdentityError):
        await cluster_identity(client, "<cluster>")
    assert await cluster_identity(client, "<default>") == ""

    await client.patch(CONFIG_MAP, KEY, {"data": {"cluster-identity": "garden-1"}})
    assert await cluster_identity(client, "<cluster>") == "garden-1"
    assert await cluster_identity(client, "<default>") == "garden-1"
    assert await cluster_identity(client, "plain") == "plain"
    assert await cluster_identity(client, "") == ""
    await client.delete(CONFIG_MAP, KEY)


async def test_an_id_with_a_colon_is_refused(second_client: Client) -> None:
    with pytest.raises(IdentityError, match="colon"):
        await cluster_identity(second_client, "a:b")
