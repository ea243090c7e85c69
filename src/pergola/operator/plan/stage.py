"""The stage of a rehearsal: its clients, and the effect of each task on them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.flow import Graph, Task
from pergola.flow.errors import is_unexpected
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component, Target
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.plan.changes import changes_of
from pergola.operator.plan.client import Rehearsal, WouldWait
from pergola.operator.plan.doubles import RehearsedDeployer, RehearsedVirtualCluster
from pergola.operator.plan.gardenlets import AWAITED, perform_all
from pergola.operator.plan.model import Change, Fate, Planned
from pergola.operator.plan.sentences import SENTENCES, WAITS
from pergola.operator.rotation.seeds.propagation import NotPropagated
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import NotConnected
from pergola.runtime.failures import leaves, sentence_of

_PATIENCE: Final = 3.0
"""The time in seconds for a task that only waits, so that its wait becomes known."""
_WAITING: Final = (WouldWait, NotPropagated)
"""The errors of a task that has to wait."""


@dataclass(slots=True)
class Stage:
    """The clients of a rehearsal, and the objects that the current task waits for.

    Attributes:
        components: The components of the flows.
    """

    runtime: Rehearsal
    virtual: RehearsedVirtualCluster
    components: Iterable[Component] = CATALOG
    deployer: RehearsedDeployer = field(init=False)
    _of: dict[str, Component] = field(init=False)
    _waits: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.deployer = RehearsedDeployer(self.runtime)
        self._of = {name: each for each in self.components for name in (each.deploy, each.wait)}

    def note(self, subject: str, problem: str) -> None:
        """Record what a task waits for; the end of a wait is ignored."""
        if problem:
            self._waits[subject] = problem

    async def planned(self, run: Run, graph: Graph, task: Task) -> Planned:
        """Return what a task would do, after all tasks before it.

        Raises:
            KubeError: The API server refused, or did not answer.
            BundleError: A ManagedResource has a Secret that cannot be read.
        """
        component = self._of.get(task.name)
        is_wait = component is not None and component.wait == task.name
        fate, why = _fate(run, task, component)
        problem = ""
        if fate is not Fate.SKIP and not is_wait:
            problem = await _perform(run, task, component)
            await self._others_go_on(task)
        changes = await self.changes()
        if problem:
            fate, why = Fate.UNKNOWN, problem
        elif fate is Fate.REMOVE and not changes:
            fate = Fate.SKIP
        changed = {(each.managed, each.gvk.group_kind, each.key) for each in changes}
        return Planned(
            flow=graph.name,
            name=task.name,
            fate=fate,
            why=why,
            after=task.after,
            waits=self._waited(),
            changes=changes,
            unchanged=len(self.deployer.taken() - changed),
        )

    async def changes(self) -> tuple[Change, ...]:
        """Return the changes since the last call, in both clusters.

        Raises:
            KubeError: The API server refused, or did not answer.
            BundleError: A ManagedResource has a Secret that cannot be read.
        """
        found = await changes_of(self.runtime.taken(), self.runtime)
        client = self.virtual.rehearsal
        if client is not None:
            found += await changes_of(client.taken(), client, Target.VIRTUAL)
        return tuple(found)

    async def _others_go_on(self, task: Task) -> None:
        """Assume that others do what a task waits for."""
        if task.name in AWAITED and self.virtual.rehearsal is not None:
            await perform_all(self.virtual.rehearsal)

    def _waited(self) -> str:
        waits, self._waits = self._waits, {}
        return "; ".join(f"{subject}: {problem}" for subject, problem in waits.items())


def _fate(run: Run, task: Task, component: Component | None) -> tuple[Fate, str]:
    """Return whether a task has something to do, with the reason or the description."""
    if reason := task.why_skipped():
        return Fate.SKIP, reason
    if component is None:
        return Fate.RUN, SENTENCES.get(task.name, "")
    if reason := component.absent(run.current()):
        return Fate.REMOVE, reason
    is_wait = task.name == component.wait
    return Fate.RUN, f"waits until {component.name} is ready" if is_wait else component.name


async def _perform(run: Run, task: Task, component: Component | None) -> str:
    """Run a task; return why its effect cannot be foreseen, or an empty text.

    A task that would wait has already done everything before the wait.
    """
    try:
        async with asyncio.timeout(_PATIENCE if task.name in WAITS else None) as deadline:
            await task.action()
    except TimeoutError:
        if not deadline.expired():
            raise
    except Exception as error:
        failed = [each for each in leaves(error) if not isinstance(each, _WAITING)]
        if any(map(is_unexpected, failed)):
            raise
        if component is not None and _cannot_learn(run, component, failed):
            # It uses these credentials, no matter what it would learn.
            await run.generate(component.credentials(run.current()))
            if await _is_new(run, component):
                await run.deployer.apply(component.objects(run.current()))
                return ""
        return sentence_of(ExceptionGroup("", failed)) if failed else ""
    return ""


def _cannot_learn(run: Run, component: Component, failed: Sequence[Exception]) -> bool:
    """Return whether a component stopped before it rendered: it would wait, or not be connected."""
    if component.absent(run.current()) is not None or component.name in run.learnt:
        return False
    return all(isinstance(error, NotConnected) for error in failed)


async def _is_new(run: Run, component: Component) -> bool:
    """Return whether a component has no ManagedResource yet."""
    managed = component.objects(run.current()).managed
    keys = [Key(each.namespace, each.name) for each in managed]
    return not any([await _exists(run.client, key) for key in keys])


async def _exists(client: Client, key: Key) -> bool:
    try:
        return await client.find(MANAGED_RESOURCE, key, metadata_only=True) is not None
    except UnknownKind:
        return False
