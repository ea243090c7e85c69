"""The external manager as a process: `pergola infra-manager`."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from pergola import __version__
from pergola.admission.protocol import Reviewer
from pergola.admission.serving import Listening, WebhookServer
from pergola.api.objects import GroupKind
from pergola.cloud.aws.metrics import AwsMetrics
from pergola.externally_managed.aws import AWS, AWS_CLUSTER, AwsSettings, AwsSource
from pergola.externally_managed.manager import Settings
from pergola.externally_managed.units import KindUnits, ServedKind
from pergola.externally_managed.webhook import PATH, AnnotationGuard
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import application
from pergola.runtime.process.application import Application
from pergola.runtime.process.options import ProcessOptions

log = get_logger("infra-manager")

LEASE: Final = "pergola-infra-manager"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the process.

    Attributes:
        kinds: the kinds of InfraClusters that it manages.
        marks_ready: whether users may declare InfraClusters ready with an annotation.
        webhook: the address of the webhook for the annotation; None to serve none.
        aws: the AWS credentials for the networks of AWSClusters.
    """

    kinds: tuple[GroupKind, ...]
    settings: Settings = field(default_factory=Settings)
    marks_ready: bool = True
    webhook: Listening | None = None
    aws: AwsSettings = field(default_factory=AwsSettings)
    process: ProcessOptions = field(default_factory=ProcessOptions)


def run(config: ClusterConfig, options: Options) -> None:
    """Run the process until it receives SIGTERM or SIGINT.

    Raises:
        Exception: it cannot start, or cannot continue.
    """
    log.info("starting", version=__version__, kinds=[str(kind) for kind in options.kinds])
    application.run(lambda: serve(config, options), "pergola-infra-manager")


async def serve(config: ClusterConfig, options: Options) -> None:
    """Serve the endpoints and, as the leader, manage all InfraClusters, until cancelled."""
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        connect = Client.connect(config, observe=metrics.client_request)
        client = await stack.enter_async_context(connect)
        app = Application(client, options.process, metrics=metrics)
        guarded = app.guarded(client)
        observe = metrics.register(AwsMetrics).request
        aws = await stack.enter_async_context(AwsSource(guarded, options.aws, observe=observe))
        await app.serve(
            leading=await assemble(guarded, options, metrics, aws),
            webhooks=_guard(options, metrics),
        )


def _guard(options: Options, metrics: Metrics) -> WebhookServer | None:
    if options.webhook is None:
        return None
    reviewer = Reviewer(PATH, AnnotationGuard(), metrics.webhook(PATH))
    return WebhookServer({PATH: reviewer}, options.webhook, metrics)


async def assemble(
    client: Client, options: Options, metrics: Metrics, aws: AwsSource | None = None
) -> list[ServedKind]:
    """Return the controllers of all kinds.

    Args:
        aws: if given, AWSClusters may use AWS as their source.

    Raises:
        ContractError: none of the kinds is served and follows a contract.
    """
    sources = {AWS_CLUSTER: {AWS: aws}} if aws is not None else {}
    kinds = KindUnits(
        client, options.settings, metrics, sources=sources, marks_ready=options.marks_ready
    )
    return await kinds.build(options.kinds)
