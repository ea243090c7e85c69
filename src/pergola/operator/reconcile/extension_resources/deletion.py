"""The extension resource tasks of the flow that deletes a Garden (spec 20 §18)."""

from collections.abc import Iterable
from typing import Final

from pergola.flow import Graph
from pergola.garden.components.etcds.backups import absent
from pergola.operator.reconcile.extension_resources import (
    backup_tasks,
    dns,
    dns_tasks,
    extension_tasks,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.operator.reconcile.extension_resources.tasks import add_deletion, reason
from pergola.operator.run.run import Run

DESTROY_BEFORE: Final = "Destroying extension resources before kube-apiserver"
BEFORE_GONE: Final = (
    "Waiting until extension resources that should be handled before kube-apiserver have been "
    "deleted"
)
DESTROY: Final = "Destroying extension resources"
GONE: Final = "Waiting until extension resources have been deleted"
DESTROY_DNS: Final = "Destroying DNSRecords for virtual garden cluster and ingress controller"
DESTROY_ENTRY: Final = "Destroying main ETCD backup entry"
DESTROY_BUCKET: Final = "Destroying main ETCD backup bucket"


def add_extension_deletion_tasks(graph: Graph, run: Run, control_plane: Iterable[str]) -> None:
    """Add the tasks that delete extension resources to the flow that deletes a Garden.

    Args:
        control_plane: The tasks after which the virtual control plane is gone. Extensions that are
            deleted after the kube-apiserver must outlive it.
    """
    caller = Caller(run.client, run.clock, run.note)
    gone = tuple(control_plane)
    before = extension_tasks.before_api_server(caller, run.current)
    add_deletion(graph, (DESTROY_BEFORE, BEFORE_GONE), before)
    add_deletion(graph, (DESTROY, GONE), extension_tasks.everything(caller), after=gone)
    graph.add(
        DESTROY_DNS,
        lambda: dns_tasks.destroy_dns_records(caller),
        after=gone,
        skip=reason(run, dns.absent),
    )
    graph.add(
        DESTROY_ENTRY,
        lambda: backup_tasks.destroy_entry(caller, run.current()),
        after=gone,
        skip=reason(run, absent),
    )
    graph.add(
        DESTROY_BUCKET,
        lambda: backup_tasks.destroy_bucket(caller, run.current()),
        after=[*gone, DESTROY_ENTRY],
        skip=reason(run, absent),
    )
