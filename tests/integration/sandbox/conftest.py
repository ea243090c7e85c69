"""Fixtures: a cluster without controllers, and one that runs the pods of a Garden."""

from pergola.testing.garden_fixture import garden_world
from pergola.testing.lone_cluster import fresh, lone_client, lone_sandbox, other

__all__ = ["fresh", "garden_world", "lone_client", "lone_sandbox", "other"]
