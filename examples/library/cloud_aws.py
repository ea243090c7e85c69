"""AWS: `pergola.cloud.aws`."""

from datetime import UTC, datetime

from pergola.api import Key
from pergola.cloud.aws import (
    AwsClient,
    AwsClients,
    Credentials,
    Place,
    Quotas,
    Retry,
    credentials_of,
    reader,
    unobserved,
)
from pergola.kube import Client


async def calls() -> None:
    """Open a client of one region; it retries, and respects the quotas of the account."""
    data = {"accessKeyID": b"AKIA0000000000000000", "secretAccessKey": b"secret"}
    credentials = credentials_of(data, "Secret shop/cloudprovider")
    assert isinstance(credentials, Credentials)
    client = AwsClient(
        "eu-west-1",
        credentials=credentials,
        retry=Retry(attempts=3),
        quotas=Quotas(),
        observe=unobserved,
    )

    async def networks() -> list[dict[str, object]]:
        return await client.pages("ec2", "DescribeVpcs", "Vpcs")

    assert callable(networks)
    await client.close()


async def clients(client: Client) -> None:
    """Share clients between objects whose credentials are in Secrets."""
    place = Place(Key("shop", "cloudprovider"), "eu-west-1")
    pool, read = AwsClients(), reader(client)

    async def account() -> str:
        async with pool.use(read, place, datetime.now(UTC)) as aws:
            return await aws.account()

    assert callable(account)
    await pool.close()
