"""The controller `csr-approver`: its caches and triggers."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.csr_approver.approve import Approver
from pergola.resource_manager.controllers.csr_approver.observe import Live, Seen
from pergola.resource_manager.controllers.csr_approver.requests import Requests
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Workers
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

DEADLINE_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the approver.

    Attributes:
        workers: The number of requests to decide in parallel.
        machine_namespace: Of the Machines in the source cluster; None if Nodes have no Machines.
        patience: The minimum age of a request before it is denied for a reason that may still
            resolve itself.
    """

    workers: int = 1
    machine_namespace: str | None = None
    patience: timedelta = timedelta(seconds=30)


def csr_approver(
    source: Client,
    target: Client,
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller that decides the CertificateSigningRequests of nodes.

    Args:
        source: For the cluster with the Machines.
        target: For the cluster with the requests and Nodes; also receives the Events.
    """
    clock = clock or SystemClock()
    recorder = Recorder(target, "csr-approver-controller", clock=clock)
    requests = Requests(target)
    namespace = settings.machine_namespace
    seen = Seen(source, target, namespace)
    approver = Approver(
        target,
        requests,
        seen,
        Live(source, target, namespace),
        namespace=namespace,
        patience=settings.patience,
        clock=clock,
        recorder=recorder,
    )
    controller: Workers[Key] = Workers(
        "csr-approver",
        approver.reconcile,
        workers=settings.workers,
        metrics=metrics,
        deadline=DEADLINE_SECONDS,
    )

    def node_changed(name: str) -> None:
        for key in requests.of_node(name):
            controller.queue.add(key)

    requests.subscribe(controller.queue.add)
    seen.subscribe(node_changed)
    return Unit(
        caches=(*requests.caches, *seen.caches), controllers=[controller], tasks=[recorder.run]
    )
