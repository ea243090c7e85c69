"""A full snapshot of etcd by etcd-backup-restore, once all objects are rewritten."""

from typing import Final

from pergola.garden.components import authorities
from pergola.garden.components.etcds import access
from pergola.garden.components.etcds.etcd import BACKUP_PORT
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.credentials import Certificate
from pergola.kube.errors import ApiError, KubeError
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Transport
from pergola.operator.virtual_cluster import Reach

_PATH: Final = "/snapshot/full"
_QUERY: Final = {"final": "true"}
_LIMIT: Final = 540.0
_LONGEST: Final = 500
"""The number of bytes of an answer to report."""


class SnapshotFailed(OperatorError):
    """etcd-backup-restore took no snapshot."""


async def take(landscape: Landscape, reach: Reach) -> None:
    """Take a full snapshot of the main etcd.

    Args:
        reach: Modifies how the server is reached, for example from outside the runtime cluster.

    Raises:
        SnapshotFailed: The server refused, or did not answer; the text says which.
    """
    config = reach(server_of(landscape))
    transport = Transport(config, timeout=_LIMIT)
    try:
        await transport.request("GET", _PATH, query=_QUERY)
    except ApiError as error:
        text = error.body[:_LONGEST].decode(errors="replace") or str(error)
        answer = f"{config.server} answered {error.code}: {text}"
        raise SnapshotFailed(f"error occurred while initiating ETCD snapshot: {answer}") from error
    except KubeError as error:
        raise SnapshotFailed(f"error occurred while initiating ETCD snapshot: {error}") from error
    finally:
        await transport.close()


def server_of(landscape: Landscape) -> ClusterConfig:
    """Return the address of the main etcd's backup-restore, and the credentials for it."""
    credentials = landscape.credentials
    client = credentials.current(access.CLIENT).data
    host = f"{access.client_service(access.MAIN)}.{NAMESPACE}"
    return ClusterConfig(
        server=f"https://{host}:{BACKUP_PORT}",
        ca=credentials.bundle(authorities.ETCD).data["bundle.crt"],
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=Certificate(client["tls.crt"], client["tls.key"]),
        namespace=NAMESPACE,
        context=host,
    )
