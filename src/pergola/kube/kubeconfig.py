"""The address of an API server and the client's identity, from kubeconfigs or the current pod.

Files are merged as in kubectl: the first file with a cluster, user or context defines it
completely, and paths are relative to the file that contains them.
"""

import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from pergola.kube.credentials import Combined, Credentials, Impersonation, TokenFile, read_file
from pergola.kube.environment_proxy import PROXY_SCHEMES
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig_embedded import embedded_credentials, embedded_server
from pergola.kube.kubeconfig_file import (
    Entry,
    Kubeconfig,
    parse_kubeconfig,
    read_kubeconfig,
)
from pergola.kube.kubeconfig_users import credentials_of

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOME_KUBECONFIG: Final = Path(".kube/config")
REQUEST_SECONDS: Final = 30.0


@dataclass(frozen=True)
class ClusterConfig:
    """One API server, as one identity.

    Attributes:
        server: the URL; may have a path.
        ca: the PEM certificates to trust; None for those of the system.
        insecure: accept any server certificate.
        tls_server_name: the name that the server's certificate must have; None for the URL's host.
        proxy_url: the proxy; None for that of the environment, if any.
        namespace: the default namespace of commands.
        context: the context of the kubeconfig; `in-cluster` for the pod's own service account.
        user: the name of the context's user; empty if it has none.
        request_seconds: the time limit of a request, and of the connection of a stream; None for
            no limit.
    """

    server: str
    ca: bytes | None = field(repr=False)
    insecure: bool
    tls_server_name: str | None
    proxy_url: str | None
    credentials: Credentials = field(repr=False)
    namespace: str
    context: str
    user: str = ""
    request_seconds: float | None = REQUEST_SECONDS

    def impersonating(self, user: str, groups: Sequence[str] = ()) -> Self:
        """Return the configuration with which this identity acts as another user."""
        acting = Combined([Impersonation(user, groups=groups), self.credentials])
        return replace(self, credentials=acting)


def load(
    path: str | Path | None = None,
    context: str | None = None,
    *,
    restricted: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> ClusterConfig:
    """Return the configuration that kubectl would use.

    The first of these is used: `path`; the files in the variable KUBECONFIG; `~/.kube/config`; the
    service account of the pod.

    Args:
        path: a kubeconfig file.
        context: the context to use instead of the kubeconfig's current one.
        restricted: accept only users without programs and impersonation, as the resource manager
            requires (spec 10 §13.1).
        environ: the environment variables to use.

    Raises:
        ConfigurationError: there is no usable configuration; the text names file and field.
    """
    files = files_of(path, environ)
    if files:
        return _cluster_config(read_kubeconfig(files), context, restricted=restricted)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ=environ)
    raise ConfigurationError(
        "no cluster is configured: pass a kubeconfig, set KUBECONFIG, write ~/.kube/config,"
        " or run in a pod with a service account token"
    )


def parse_cluster(text: bytes, source: str) -> ClusterConfig:
    """Return the configuration of the current context of a kubeconfig from an object.

    See `kubeconfig_embedded` for what it must not have.

    Args:
        text: YAML or JSON.
        source: where it is from, such as `Secret garden/gardener`, for errors.

    Raises:
        ConfigurationError: it is unusable, or names files, programs, a proxy, another identity, or
            anything but an https URL.
    """
    kubeconfig = parse_kubeconfig([(Path(source), text)])
    context = kubeconfig.context()
    cluster = kubeconfig.cluster(context)
    return embedded_config(
        context,
        cluster,
        server=embedded_server(cluster),
        credentials=embedded_credentials(kubeconfig.user(context), cluster),
    )


def embedded_config(
    context: Entry, cluster: Entry, *, server: str, credentials: Credentials
) -> ClusterConfig:
    """Return the configuration of a cluster in a kubeconfig from an object.

    Args:
        server: as from `embedded_server`.
        credentials: as from `embedded_credentials`.

    Raises:
        ConfigurationError: the authority is unusable, or contradicts another field.
    """
    insecure, ca = _trusted(cluster)
    return ClusterConfig(
        server=server,
        ca=ca,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy_url=None,
        credentials=credentials,
        namespace=context.text("namespace") or "default",
        context=context.name,
    )


def in_cluster(
    *, environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT
) -> ClusterConfig:
    """Return the cluster in which this pod runs, as the pod's service account.

    Raises:
        ConfigurationError: this process is not in a pod, or the pod mounts no service account
            token.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigurationError(
            "this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set;"
            " pass a kubeconfig"
        )
    namespace = folder / "namespace"
    return ClusterConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=read_file(folder / "ca.crt", "the cluster's CA"),
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=TokenFile(folder / "token"),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        context="in-cluster",
        user="service account of the pod",
    )


def ssl_context(config: ClusterConfig) -> ssl.SSLContext:
    """Return the TLS settings for the server, with the current client certificate.

    Raises:
        ConfigurationError: the CA or the client certificate is unusable.
    """
    # Not create_default_context: its strict checks refuse CAs that Kubernetes accepts.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif config.ca is None:
        context.load_default_certs()
    else:
        _trust(context, config)
    certificate = config.credentials.client_certificate()
    if certificate is not None:
        certificate.load_into(context)
    return context


def _trust(context: ssl.SSLContext, config: ClusterConfig) -> None:
    # An intermediate certificate may be the anchor, as for every client written in Go.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=(config.ca or b"").decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f'context "{config.context}": the certificate authority is not a PEM certificate'
        ) from error


def files_of(path: str | Path | None, environ: Mapping[str, str]) -> list[Path]:
    """Return the kubeconfig files that `load` reads; empty if there are none, as in a pod."""
    if path:
        return [Path(path).expanduser()]
    listed = [Path(entry) for entry in environ.get("KUBECONFIG", "").split(os.pathsep) if entry]
    if listed:
        # As in kubectl, files of the list may be missing, but not all of them.
        return [file for file in listed if file.exists()] or listed
    home = environ.get("HOME")
    default = Path(home) / HOME_KUBECONFIG if home else None
    return [default] if default and default.is_file() else []


def _cluster_config(kubeconfig: Kubeconfig, name: str | None, *, restricted: bool) -> ClusterConfig:
    context = kubeconfig.context(name)
    cluster = kubeconfig.cluster(context)
    user = kubeconfig.user(context)
    insecure, ca = _trusted(cluster)
    return ClusterConfig(
        server=_server(cluster),
        ca=ca,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy_url=_proxy(cluster),
        credentials=credentials_of(user, cluster, restricted=restricted),
        namespace=context.text("namespace") or "default",
        context=context.name,
        user=user.name,
    )


def _trusted(cluster: Entry) -> tuple[bool, bytes | None]:
    """Return whether any certificate is accepted, and the authority to trust."""
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.content("certificate-authority")
    if insecure and ca is not None:
        raise cluster.error("certificate-authority", "contradicts insecure-skip-tls-verify")
    return insecure, ca


def _server(cluster: Entry) -> str:
    text = cluster.text("server")
    if not text:
        raise cluster.error("server", "is missing")
    server = text if "://" in text else f"http://{text}"
    url = urlsplit(server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise cluster.error("server", "is not an http or https URL")
    return server.rstrip("/")


def _proxy(cluster: Entry) -> str | None:
    text = cluster.text("proxy-url")
    if text and urlsplit(text).scheme not in PROXY_SCHEMES:
        raise cluster.error(
            "proxy-url", "is not an http or https URL; other proxies are not supported"
        )
    return text or None
