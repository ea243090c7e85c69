"""Reconciling a Garden: the numbered steps of spec 20 §8."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    Identity,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, Garden
from pergola.extension_api.errors import codes_of
from pergola.flow import TASK_FAILED, FlowFailed, Graph, Progress
from pergola.flow import Settings as FlowSettings
from pergola.flow import run as run_flow
from pergola.flow.errors import is_unexpected
from pergola.flow.metrics import FlowMetrics
from pergola.flow.retry import Diagnosis
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.garden.components.gardener_dashboard.component import GARDENER_DASHBOARD
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.seeds import Used
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.lost_secrets import LostSecrets
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.kube.finalizers import add_finalizer
from pergola.operator.oldest import check_only_one
from pergola.operator.reconcile import flow_delete, flows, operation, prepare
from pergola.operator.reconcile.judge import check
from pergola.operator.reconcile.leftovers import StillExists
from pergola.operator.reconcile.own_objects import OwnObjects
from pergola.operator.reconcile.status import Operator, Status, sentence
from pergola.operator.reconcile.usage import ensure_unused
from pergola.operator.rotation import schedule
from pergola.operator.rotation.phases import key_completes_now
from pergola.operator.run.build import Built, build, open_secrets
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.observed import Template, bare_landscape
from pergola.operator.run.run import Run
from pergola.operator.seeds import SeedWatch
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger
from pergola.secrets_manager import SecretsManager

log = get_logger("garden")

IGNORE: Final = "operator.gardener.cloud/ignore"
"""The annotation that stops all reconciliation of a Garden (spec 20 'Beyond' 20)."""

_AT_ONCE: Final = 0.005
_PUNCTUAL: Final = 1.0
"""Seconds of tolerance, so that a scheduled step is also due if the clock is slightly slow."""
_SETUP_SPAN: Final = (0, 15)
_MAIN_SPAN: Final = (15, 100)
_DELETION_SPAN: Final = (0, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the reconciliation of Gardens.

    Attributes:
        template: Returns the common parts of all Gardens' landscapes.
        operator: The operator that reconciles them.
        sync_period: Seconds between two reconciliations without a change.
        any_version: Whether to accept unsupported versions of Kubernetes.
        components: The components of a Garden.
    """

    template: Template
    operator: Operator
    sync_period: float
    any_version: bool = False
    components: Sequence[Component] = CATALOG


class GardenReconciler:
    """Reconciles Gardens; of several, only the oldest."""

    def __init__(
        self,
        client: Client,
        virtual: VirtualCluster,
        seeds: SeedWatch,
        own: OwnObjects,
        settings: Settings,
        clock: Clock,
        events: Recorder,
        metrics: FlowMetrics,
    ) -> None:
        self._client = client
        self._virtual = virtual
        self._seeds = seeds
        self._own = own
        self._settings = settings
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._notes = _Notes()
        self._deployer = Deployer(client, clock, self._notes)

    async def reconcile(self, key: Key) -> Outcome:
        """Bring a Garden to its desired state.

        Raises:
            ReconcileError: It failed, and the Garden's status has the reason.
            KubeError: The API server refused, or did not answer.
        """
        garden = await self._client.find(GARDEN, key)
        if garden is None:
            return DONE
        if is_ignored(garden):
            log.info("garden ignored", garden=key.name, annotation=IGNORE)
            return DONE
        status = Status(self._client, garden, self._settings.operator, self._clock)
        try:
            return await self._operate(garden, status)
        except Conflict:
            raise  # lost to a concurrent writer; the next attempt starts at once
        except Exception as error:  # report any error in the Garden's status
            await self._failed(status, error)
            if isinstance(error, FlowFailed) and error.after is not None:
                return Again(error.after)
            raise ReconcileError(str(error)) from error

    async def _operate(self, garden: JsonObject, status: Status) -> Outcome:
        await check_only_one(self._client, garden)
        self._own.begin()
        is_deleted = deletion_timestamp_of(garden) is not None
        requested, now = operation.requested_by(garden), self._clock.now()
        scheduled = schedule.due(garden, now)
        changes = operation.beginning(status.typed, [*requested, *scheduled], now)
        await status.begin("Delete" if is_deleted else "Reconcile", changes)
        if _requests(status.garden) != _requests(garden):
            return Again(_AT_ONCE)  # they decide which rotations begin
        for each in scheduled:
            self._events.normal(Regarding.of(garden), "Scheduled", f"{each} begins as scheduled")
        remaining = operation.remaining(status.garden)
        if remaining is not None:
            status.garden = await self._client.patch(GARDEN, Key.of(garden), remaining)
        if is_deleted:
            return await self._delete(status)
        check(status.typed, any_version=self._settings.any_version)
        kept = await add_finalizer(self._client, GARDEN, status.garden, marks.OPERATOR_FINALIZER)
        if kept is None:
            return DONE
        status.garden = kept
        return await self._reconcile(status)

    async def _reconcile(self, status: Status) -> Outcome:
        self._deployer.applied.clear()
        await prepare.check_autoscaler(self._client, status.typed)
        await prepare.apply_namespace(self._client, status.typed)
        lost = LostSecrets(self._client, status.garden, self._events)
        template = self._settings.template
        built = await build(self._client, status.garden, template, self._clock, lost.settle)
        run = self._run(built)
        components = self._settings.components
        await run.generate_irreplaceable(components)
        setup = flows.setup(run, components)
        await self._flow(setup, status, _SETUP_SPAN, is_followed=True)
        main = flows.reconciliation(run, Key.of(status.garden), components)
        await self._flow(main, status, _MAIN_SPAN, is_followed=True)
        await built.secrets.cleanup()
        self._seeds.use(_used(run))
        await status.succeed(operation.success(status.typed, self._clock.now()))
        self._own.expect(self._deployer.applied | _secrets(built.secrets))
        self._events.normal(Regarding.of(status.garden), "Reconciled", "Garden is reconciled")
        if key_completes_now(status.typed):
            return Again(_AT_ONCE)
        return Again(self._until_next(status.typed))

    async def _delete(self, status: Status) -> Outcome:
        """Delete everything that belongs to the Garden, and release it.

        Raises:
            OperatorError: It still has Seeds or Shoots, or they cannot be listed.
            FlowFailed: A task failed.
        """
        if marks.OPERATOR_FINALIZER not in finalizers_of(status.garden):
            return DONE
        await ensure_unused(self._client, self._virtual, status.garden)
        landscape = await bare_landscape(self._client, status.garden, self._settings.template)
        secrets = await open_secrets(self._client, landscape, self._clock)
        run = self._run(Built(landscape, secrets))
        await self._flow(flow_delete.deletion(run), status, _DELETION_SPAN)
        self._events.normal(Regarding.of(status.garden), "Deleted", "Garden is deleted")
        await prepare.release(self._client, status.garden)
        return DONE

    def _until_next(self, garden: Garden) -> float:
        """Return the seconds until the next reconciliation without a change."""
        scheduled = schedule.next_time(garden, self._clock.now())
        period = self._settings.sync_period
        return period if scheduled is None else min(period, scheduled.total_seconds() + _PUNCTUAL)

    def _run(self, built: Built) -> Run:
        return Run(
            client=self._client,
            clock=self._clock,
            deployer=self._deployer,
            virtual=self._virtual,
            built=built,
            note=self._notes,
        )

    async def _flow(
        self, graph: Graph, status: Status, span: tuple[int, int], *, is_followed: bool = False
    ) -> None:
        progress = Progress(graph, status.report, span=span, is_followed=is_followed)
        self._notes.progress = progress
        settings = FlowSettings(sentence=TASK_FAILED, diagnose=_diagnose)
        observers = [self._metrics.of(graph.name)]
        await run_flow(graph, progress=progress, observers=observers, settings=settings)

    async def _failed(self, status: Status, error: Exception) -> None:
        log.error(
            "garden not reconciled",
            garden=Key.of(status.garden).name,
            error=str(error),
            exc_info=error if is_unexpected(error) else None,
        )
        await status.fail(error)
        kind = "Delete" if deletion_timestamp_of(status.garden) else "Reconcile"
        self._events.warning(Regarding.of(status.garden), f"{kind}Failed", sentence(error))


def _used(run: Run) -> Used:
    """Return the facts about Seeds that components of a run have learnt."""
    scraped = run.learnt.get(PROMETHEUS_GARDEN.name, run.current())
    shown = run.learnt.get(GARDENER_DASHBOARD.name, scraped)
    return Used(scraped.seed_domains, shown.terminal_seed)


def _secrets(secrets: SecretsManager) -> set[Identity]:
    return {Identity(SECRET, Key(NAMESPACE, name)) for name in secrets.used}


def is_ignored(garden: JsonObject) -> bool:
    """Return whether an annotation stops the reconciliation of a Garden."""
    return marks.is_truthy(annotations_of(garden).get(IGNORE))


def _requests(garden: JsonObject) -> tuple[int, list[str]]:
    """Return the requests in a Garden: the generation of its spec, and the operations."""
    return generation_of(garden), operation.requested_by(garden)


class _Notes:
    """Passes the objects that tasks wait for to the progress of the running flow."""

    progress: Progress | None = None

    def __call__(self, subject: str, problem: str) -> None:
        if self.progress is not None:
            self.progress.note(subject, problem)


def _diagnose(error: Exception) -> Diagnosis:
    after = error.after if isinstance(error, StillExists) else None
    return Diagnosis(after=after, codes=tuple(map(str, codes_of(error))))
