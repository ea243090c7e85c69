"""Fixtures: a cluster without controllers, and one that runs the pods of a Garden."""

from tests.support.garden_fixture import garden_world
from tests.support.lone_cluster import fresh, lone_client, lone_sandbox, other

__all__ = ["fresh", "garden_world", "lone_client", "lone_sandbox", "other"]
