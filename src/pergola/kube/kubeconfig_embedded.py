"""Kubeconfigs from Secrets and other objects, whose author is not the operator of the process.

A kubeconfig of the process itself may name files, proxies and programs. One from an object would
make the process read its own files, send its own token to a stranger, run programs, or send
requests into networks that the author cannot reach: it must contain its credentials, and name an
API server only.
"""

from typing import Final
from urllib.parse import urlsplit

from pergola.kube.credentials import Credentials
from pergola.kube.kubeconfig_file import Entry
from pergola.kube.kubeconfig_users import credentials_of

_FILES: Final = ("tokenFile", "client-certificate", "client-key", "certificate-authority")


def embedded_server(cluster: Entry) -> str:
    """Return the URL of the API server.

    Raises:
        ConfigurationError: the cluster has something else than an https URL, or needs a file or a
            proxy.
    """
    _check_no_files(cluster)
    if cluster.values.get("proxy-url"):
        raise cluster.error("proxy-url", "is not allowed in a kubeconfig from an object")
    text = cluster.text("server")
    if not text:
        raise cluster.error("server", "is missing")
    server = text if "://" in text else f"https://{text}"
    if not _is_plain_https(server):
        raise cluster.error(
            "server",
            "must be an https URL without user, query and fragment",
        )
    return server.rstrip("/")


def embedded_credentials(user: Entry, cluster: Entry) -> Credentials:
    """Return the credentials of a user, which the kubeconfig must contain.

    Raises:
        ConfigurationError: they need a file, a program or another identity.
    """
    _check_no_files(user)
    return credentials_of(user, cluster, restricted=True)


def _check_no_files(entry: Entry) -> None:
    for field in _FILES:
        if entry.values.get(field):
            raise entry.error(field, "names a file; a Secret must contain its credentials")


def _is_plain_https(server: str) -> bool:
    try:
        url = urlsplit(server)
        _ = url.port
    except ValueError:
        return False
    characters_fit = server.isascii() and server.isprintable() and " " not in server
    is_plain = "?" not in server and "#" not in server and "@" not in url.netloc
    return url.scheme == "https" and bool(url.hostname) and is_plain and characters_fit
