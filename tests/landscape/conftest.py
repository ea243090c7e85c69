"""A landscape that all tests of this folder share, with one Seed and one Shoot."""

import os
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pergola.api.objects import Key
from pergola.cloud.aws import AwsClient
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.landscape.aws import REGION, account_in_aws
from tests.support.landscape import SeedCluster, World, living_landscape
from tests.support.landscape_aws import BACKED_UP, backup_secret


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def landscape(
    tmp_path_factory: pytest.TempPathFactory, aws: CorrectedAws
) -> AsyncIterator[World]:
    """Yield a landscape whose Garden is reconciled, with machines in an AWS."""
    name = f"land-{os.getpid()}-{secrets.token_hex(2)}"
    directory = tmp_path_factory.mktemp("landscape")
    async with living_landscape(name, directory, aws=aws.url) as world:
        yield world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seed(landscape: World) -> SeedCluster:
    """Return a healthy Seed."""
    return await landscape.seed("local")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shoot(landscape: World, seed: SeedCluster) -> Key:
    """Return a healthy Shoot without workers."""
    return await landscape.shoot("first", seed)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def landscape_on_aws(landscape: World, aws: CorrectedAws) -> World:
    """Return the landscape, with Pergola's extensions for Shoots on AWS."""
    await landscape.install("pergola-aws", {"AWS_ENDPOINT_URL": aws.url})
    await landscape.install("networking-calico")
    return landscape


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seeds_on_aws(landscape_on_aws: World) -> tuple[SeedCluster, SeedCluster]:
    """Return two Seeds with backups, on which Pergola's extensions run."""
    landscape = landscape_on_aws
    await landscape.garden.create(backup_secret())
    one = await landscape.seed("source", patch=BACKED_UP)
    return one, await landscape.seed("target", patch=BACKED_UP)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def aws() -> AsyncIterator[CorrectedAws]:
    """Yield an AWS for the Garden, Seeds and Shoots."""
    async with account_in_aws() as double:
        yield double


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def landscape_of_provider_local(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[World]:
    """Yield a landscape with the original's provider-local, which registers types of its own."""
    name = f"local-{os.getpid()}-{secrets.token_hex(2)}"
    async with living_landscape(name, tmp_path_factory.mktemp("provider-local")) as world:
        await world.install_original("provider-local")
        yield world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def account(aws: CorrectedAws) -> AsyncIterator[AwsClient]:
    """Yield a client of the account."""
    async with aws.client(REGION) as client:
        yield client
