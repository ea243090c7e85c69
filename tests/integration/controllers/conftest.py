"""Fixtures: the tests of this folder have a separate cluster."""

from pergola.testing.lone_cluster import fresh, lone_client, lone_sandbox, other, recorder

__all__ = ["fresh", "lone_client", "lone_sandbox", "other", "recorder"]
