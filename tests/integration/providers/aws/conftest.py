"""Fixtures for tests of infrastructure and machines in AWS."""

from tests.support.aws.fixtures import aws, client, holding, mortal, moto_server
from tests.support.aws.worker_fixtures import stopped_worker_site, worker_site

__all__ = [
    "aws",
    "client",
    "holding",
    "mortal",
    "moto_server",
    "stopped_worker_site",
    "worker_site",
]
