"""The extension resource tasks in the flows of a Garden (spec 20 §11, §12.1)."""

from collections.abc import Callable, Iterable
from typing import Final

from pergola.flow import Graph, Retry
from pergola.garden.components import task_names
from pergola.garden.components.etcds.backups import bucket_absent, entry_absent
from pergola.garden.components.kube_apiserver_exposure.address import wait_for_address
from pergola.garden.landscape import Landscape
from pergola.operator.reconcile.extension_resources import (
    backup_tasks,
    dns,
    dns_tasks,
    extension_tasks,
    extensions,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.operator.reconcile.extension_resources.extension_tasks import Deletion, Deployment
from pergola.operator.reconcile.extension_resources.installed import wait_for_extensions
from pergola.operator.reconcile.extension_resources.required import none_required
from pergola.operator.run.run import Run

INSTALLED: Final = "Waiting for Extensions to get ready"
DNS: Final = "Reconciling DNSRecords for virtual garden cluster and ingress controller"
BUCKET: Final = "Reconciling main ETCD backup bucket"
DEPLOY_BEFORE: Final = "Deploying extension resources before kube-apiserver"
DEPLOY_AFTER: Final = "Deploying extension resources"
AFTER: Final = "Waiting until extension resources are ready"
DELETE_STALE: Final = "Deleting stale extension resources"
STALE: Final = "Waiting until stale extension resources are deleted"

_RETRY: Final = Retry.every(5)
_RETRY_LIMIT: Final = 30.0


def add_installation_task(graph: Graph, run: Run) -> None:
    """Add the task that awaits extensions to the flow that prepares the runtime cluster."""

    async def wait() -> None:
        await wait_for_extensions(run.client, run.current(), note=run.note)

    graph.add(
        INSTALLED,
        wait,
        after=[task_names.RESOURCE_MANAGER, task_names.RUNTIME_SYSTEM],
        skip=reason(run, none_required),
    )


def add_extension_tasks(graph: Graph, run: Run) -> None:
    """Add the tasks that reconcile extension resources to the flow of a Garden."""
    caller = Caller(run.client, run.clock, run.note)
    _add_dns(graph, run, caller)
    _add_backup(graph, run, caller)
    before = Deployment(caller, run.current, is_before=True)
    skip_before = reason(run, extensions.none_before)
    graph.add(DEPLOY_BEFORE, before.deploy, skip=skip_before, retry=_RETRY, timeout=_RETRY_LIMIT)
    graph.add(task_names.EXTENSIONS_BEFORE, before.wait, after=[DEPLOY_BEFORE], skip=skip_before)
    after = Deployment(caller, run.current, is_before=False)
    skip_after = reason(run, extensions.none_after)
    graph.add(
        DEPLOY_AFTER,
        after.deploy,
        after=[task_names.CONNECTION],
        skip=skip_after,
        retry=_RETRY,
        timeout=_RETRY_LIMIT,
    )
    graph.add(AFTER, after.wait, after=[DEPLOY_AFTER], skip=skip_after)
    stale = extension_tasks.stale(caller, run.current)
    add_deletion(graph, (DELETE_STALE, STALE), stale, after=[task_names.CONNECTION])


def _add_dns(graph: Graph, run: Run, caller: Caller) -> None:
    async def reconcile() -> None:
        address = await wait_for_address(run, dns_tasks.ADDRESS_LIMIT)
        await dns_tasks.reconcile_dns_records(caller, run.current(), address)

    graph.add(DNS, reconcile, after=task_names.SYNC_POINT, skip=reason(run, dns.absent))


def _add_backup(graph: Graph, run: Run, caller: Caller) -> None:
    async def reconcile_bucket() -> None:
        await backup_tasks.reconcile_bucket(caller, run.current())

    async def reconcile_entry() -> None:
        await backup_tasks.reconcile_entry(caller, run.current())

    graph.add(BUCKET, reconcile_bucket, skip=reason(run, bucket_absent))
    graph.add(
        task_names.BACKUP_ENTRY,
        reconcile_entry,
        after=[BUCKET],
        skip=reason(run, entry_absent),
    )


def reason(run: Run, absent: Callable[[Landscape], str | None]) -> Callable[[], str | None]:
    """Return a function that says, once a task's turn has come, why it has nothing to do."""
    return lambda: absent(run.current())


def add_deletion(
    graph: Graph, names: tuple[str, str], deletion: Deletion, after: Iterable[str] = ()
) -> None:
    """Add a task that requests deletions, and one that waits for them."""
    delete, wait = names
    graph.add(delete, deletion.delete, after=after, retry=_RETRY, timeout=_RETRY_LIMIT)
    graph.add(wait, deletion.wait, after=[delete])
