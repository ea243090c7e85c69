"""Fixtures: a separate cluster for the tests of this folder."""

from tests.support.lone_cluster import fresh, lone_client, lone_sandbox, other, recorder

__all__ = ["fresh", "lone_client", "lone_sandbox", "other", "recorder"]
