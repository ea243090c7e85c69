"""The account of a landscape's Shoots on AWS.

moto is in the extra `testing`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import moto

REGION: Final = "eu-west-1"
DOMAIN: Final = "example.org"


@asynccontextmanager
async def account_in_aws() -> AsyncGenerator[CorrectedAws]:
    """Run an AWS with the hosted zone of the Shoots' domain."""
    with moto() as server:
        async with CorrectedAws(server) as double:
            async with double.client(REGION) as client:
                await client.call(
                    "route53", "CreateHostedZone", Name=DOMAIN, CallerReference="once"
                )
            yield double
