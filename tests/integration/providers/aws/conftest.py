"""Fixtures for tests of infrastructure in AWS."""

from tests.support.aws.fixtures import aws, client, holding, mortal, moto_server

__all__ = ["aws", "client", "holding", "mortal", "moto_server"]
