"""Fixtures of a cluster without controllers, for what writes into all namespaces."""

from pergola.testing.lone_cluster import fresh, lone_client, lone_sandbox

__all__ = ["fresh", "lone_client", "lone_sandbox"]
