"""`pergola infra-manager`: the process."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.infra.target import InfraError

if TYPE_CHECKING:
    from pergola.api.objects import Key


def infra_manager(
    *,
    kind: Annotated[list[str] | None, Parameter(negative="")] = None,
    name: str = "pergola",
    namespace: Annotated[str, Parameter(alias="-n")] = "",
    lease_namespace: str = "",
    health_port: int = 8081,
    metrics_port: int = 8080,
    bind: str = "",
    webhook_port: int = 0,
    webhook_cert_dir: Path | None = None,
    webhook_client_ca_file: Path | None = None,
    aws_credentials: str = "",
    aws_namespaces: str = "",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Fill InfraClusters of Cluster API from existing networks, and keep them up to date.

    Manages InfraClusters whose annotation cluster.x-k8s.io/managed-by has the given name, and
    those of other managers that a user has declared ready. Never creates, changes or deletes any
    part of a network. Runs until SIGTERM or SIGINT.

    Parameters
    ----------
    kind
        A kind of InfraClusters with its group, which is required; may be given several times.
    name
        The value of the annotation on this manager's InfraClusters.
    namespace
        Manage only InfraClusters in this namespace.
    lease_namespace
        The namespace of the leader election Lease; required for several replicas.
    health_port
        The port of /healthz and /readyz.
    metrics_port
        The port of /metrics.
    bind
        The address of all endpoints; all addresses by default.
    webhook_port
        The port of the webhook that keeps the annotation managed-by from being removed; 0 to
        serve none.
    webhook_cert_dir
        The directory with tls.crt and tls.key of that webhook.
    webhook_client_ca_file
        A PEM file: only clients with a certificate of these authorities may connect to it.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey; AWS's default credential
        chain by default.
    aws_namespaces
        The namespaces whose AWSClusters may use the credentials, such as a,b; all by default.
    """
    from pergola.admission.serving import Listening
    from pergola.externally_managed.app import LEASE, Options, run
    from pergola.externally_managed.aws import AwsSettings
    from pergola.externally_managed.kinds import parse_kind
    from pergola.externally_managed.manager import Settings
    from pergola.runtime.logging import configure
    from pergola.runtime.process.options import Address, Election, ProcessOptions

    if not kind:
        raise InfraError(
            "--kind is required: a kind of InfraClusters with its group, as in "
            "`pergola infra-manager --kind AWSCluster.infrastructure.cluster.x-k8s.io`"
        )
    if webhook_port and webhook_cert_dir is None:
        raise InfraError("--webhook-port needs --webhook-cert-dir, with tls.crt and tls.key")
    configure("info", "json" if not sys.stderr.isatty() else "text")
    options = Options(
        kinds=tuple(parse_kind(text) for text in kind),
        settings=Settings(name=name, namespace=namespace),
        aws=AwsSettings(
            credentials=_secret_key(aws_credentials),
            namespaces=tuple(filter(None, map(str.strip, aws_namespaces.split(",")))),
        ),
        webhook=Listening(
            host=bind,
            port=webhook_port,
            directory=webhook_cert_dir,
            client_ca=webhook_client_ca_file,
        )
        if webhook_port
        else None,
        process=ProcessOptions(
            health=Address(bind, health_port, "--health-port"),
            metrics=Address(bind, metrics_port, "--metrics-port"),
            election=Election(namespace=lease_namespace, name=LEASE) if lease_namespace else None,
        ),
    )
    run(cluster.config(), options)


def _secret_key(text: str) -> "Key | None":
    """Return the key in `NAMESPACE/NAME`; None if the text is empty."""
    from pergola.api.objects import Key

    namespace, _, name = text.partition("/")
    if text and not (namespace and name):
        raise InfraError(f'--aws-credentials is "{text}"; write it as NAMESPACE/NAME of a Secret')
    return Key(namespace, name) if text else None
