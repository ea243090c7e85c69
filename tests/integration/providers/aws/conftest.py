"""Fixtures for tests of infrastructure in AWS."""

from pergola.testing.aws.fixtures import aws, client, moto_server

__all__ = ["aws", "client", "moto_server"]
