"""What tests of infrastructure in AWS share: moto, with its gaps put right."""

from collections.abc import AsyncIterator, Iterator

import pytest

from pergola.cloud.aws import AwsClient
from pergola.testing.aws.corrections import QUICK, CorrectedAws
from pergola.testing.aws.moto import moto

REGION = "eu-west-1"


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    """moto's server; one for each process that runs tests."""
    with moto() as server:
        yield server


@pytest.fixture
async def aws(moto_server: str) -> AsyncIterator[CorrectedAws]:
    """An account in which there is nothing."""
    async with CorrectedAws(moto_server) as double:
        yield double


@pytest.fixture
async def client(aws: CorrectedAws) -> AsyncIterator[AwsClient]:
    """A client of that account."""
    async with aws.client(REGION, retry=QUICK) as client:
        yield client
