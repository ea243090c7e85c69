"""Two clusters in user-provided networks, and the tags that they leave there."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.world import everything, tags_in
from tests.support.aws.steps import TECHNICAL_ID

CLUSTER: Final = f"kubernetes.io/cluster/{TECHNICAL_ID}"
"""The tag of the cluster in `steps`."""
OTHER: Final = "shoot--garden--other"
"""The technical id of another cluster."""
OTHER_CLUSTER: Final = f"kubernetes.io/cluster/{OTHER}"


async def tags_of_subnets(client: AwsClient) -> dict[str, dict[str, str]]:
    """Return the tags of all subnets and route tables that have any, by their ids."""
    return {
        key.partition("/")[2]: tags
        for key, tags in tags_in(await everything(client)).items()
        if key.startswith(("Subnets/", "RouteTables/"))
    }


async def settle(client: AwsClient) -> dict[str, JsonObject]:
    """Return the contents of the account once nothing is pending."""
    await everything(client)
    return await everything(client)
