"""Configurations of clusters, for tests with a server of their own or without requests."""

from typing import Final

from pergola.kube.credentials import Anonymous, Credentials
from pergola.kube.kubeconfig import ClusterConfig

NOWHERE: Final = "http://127.0.0.1:1"
"""The URL of a server that does not exist."""


def cluster_config(server: str = NOWHERE, credentials: Credentials | None = None) -> ClusterConfig:
    """Return the configuration of a cluster; anonymous by default."""
    return ClusterConfig(
        server=server,
        ca=None,
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=credentials or Anonymous(),
        namespace="",
        context="",
    )
