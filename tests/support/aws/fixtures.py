"""Fixtures for tests with an AWS account: moto, with its gaps corrected."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from tests.support.aws.flows import MortalAws
from tests.support.aws.garden_site import HoldingAws

REGION: Final = "eu-west-1"


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    """Yield moto's server, one per test process."""
    with moto() as server:
        yield server


@pytest.fixture
async def aws(moto_server: str) -> AsyncIterator[CorrectedAws]:
    """Yield an empty account."""
    async with CorrectedAws(moto_server) as double:
        yield double


@pytest.fixture
async def client(aws: CorrectedAws) -> AsyncIterator[AwsClient]:
    """Yield a client of that account."""
    async with aws.client(REGION, retry=QUICK) as client:
        yield client


@pytest.fixture
async def mortal(moto_server: str) -> AsyncIterator[MortalAws]:
    """Yield an empty account in which a process can die at any request."""
    async with MortalAws(moto_server) as double:
        yield double


@pytest.fixture
async def holding(moto_server: str) -> AsyncIterator[HoldingAws]:
    """Yield an empty account that can hold back answers."""
    async with HoldingAws(moto_server) as double:
        yield double
