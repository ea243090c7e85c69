"""Clusters with managed networks, and their resources in AWS.

```python
cluster = await created(client, zones=("a", "b"))
assert await count(client) == {"Vpcs": 1, ...}
```
"""

from collections import Counter
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import OWNED, Desired
from pergola.providers.aws.flows.reconcile import network_steps
from pergola.sandbox.aws.world import Network, everything, managed_config, tags_in
from tests.support.aws.steps import TECHNICAL_ID, StepsOf, read_config

CLUSTER_TAG: Final = f"kubernetes.io/cluster/{TECHNICAL_ID}"
_OURS: Final = frozenset(
    {
        "Vpcs",
        "DhcpOptions",
        "InternetGateways",
        "EgressOnlyInternetGateways",
        "Subnets",
        "RouteTables",
        "NatGateways",
        "Addresses",
        "VpcEndpoints",
    }
)


def cluster(
    client: AwsClient,
    config: JsonObject,
    *,
    families: tuple[str, ...] = ("IPv4",),
    network: Network | None = None,
) -> StepsOf:
    """Return a cluster without any resources yet.

    Args:
        network: the user-provided network of its config.
    """
    desired = Desired(
        technical_id=TECHNICAL_ID,
        region=client.region,
        config=read_config(config),
        families=families,
    )
    return StepsOf(client, network or Network(client, "", ""), config, desired)


async def created(
    client: AwsClient, *, zones: tuple[str, ...] = ("a",), families: tuple[str, ...] = ("IPv4",)
) -> StepsOf:
    """Create a cluster with a VPC and everything in it."""
    found = cluster(client, managed_config(client.region, zones=zones), families=families)
    await found.ensure(network_steps)
    return found


async def count(client: AwsClient) -> Counter[str]:
    """Return how many things of a network have the cluster's tag, by kind."""
    tagged = tags_in(await everything(client)).items()
    kinds = (key.partition("/")[0] for key, tags in tagged if tags.get(CLUSTER_TAG) == OWNED)
    return Counter(kind for kind in kinds if kind in _OURS)


async def thing(cluster: StepsOf, kind: str, key: str) -> JsonObject:
    """Return AWS's description of a thing, such as one of `Subnets`, by its key in the state."""
    return (await everything(cluster.client))[f"{kind}/{cluster.saved[key]}"]


def routes_of(table: JsonObject) -> dict[str, str]:
    """Return a table's targets by destination, without local routes and endpoints."""
    found: dict[str, str] = {}
    for route in table["Routes"]:
        to = route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock")
        fields = ("NatGatewayId", "EgressOnlyInternetGatewayId", "NetworkInterfaceId", "GatewayId")
        target = next((route[field] for field in fields if route.get(field)), "")
        if to and target != "local":
            found[to] = target
    return found


def with_zone(config: JsonObject, number: int = 0, **fields: str | None) -> JsonObject:
    """Return the networks of a config with changed fields in one zone; None removes a field."""
    zones = list(config["networks"]["zones"])
    changed = {**zones[number], **fields}
    zones[number] = {key: value for key, value in changed.items() if value is not None}
    return {**config["networks"], "zones": zones}


def in_zone(key: str, zone: str = "eu-west-1a") -> str:
    """Return the key of a zone's thing in the state."""
    return keys.zone_key(zone, key)
