"""Plan and run the steps of a flow (spec 30 §3.3); `pergola aws plan` draws the same steps."""

from dataclasses import replace
from typing import Final

from pergola.flow import Progress, Reporter, Result, Saver, Settings, State, Write, run
from pergola.flow.metrics import FlowMetrics
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.codes import diagnose
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.step import Step, Work, graph_of, record

RECONCILIATION: Final = "Infrastructure reconciliation"
DELETION: Final = "Infrastructure deletion"
_SETTINGS: Final = Settings(diagnose=diagnose)


def foresee(steps: list[Step], work: Work) -> dict[str, Note]:
    """Return the plan of each step, by its name, without sending requests or changing the state.

    As in a run, steps know what those before them have found.

    Args:
        steps: In a possible order of execution.
    """
    foreseen = replace(work, state=State(work.state.snapshot()))
    return {step.name: _foresee_one(step, foreseen) for step in steps}


def _foresee_one(step: Step, work: Work) -> Note:
    if step.skip:
        return Note(Fate.SKIP, step.skip)
    decision = step.decide(work)
    record(work, decision)
    return decision.note


def name_zones(desired: Desired, state: State) -> None:
    """Assign each zone its `zN`, so that the state of a new cluster is not empty.

    Only a cluster with a state is ever deleted, so it is written before anything is created.
    """
    for zone in desired.config.networks.zones:
        keys.suffix_of(state, zone.name)


async def run_steps(
    name: str,
    steps: list[Step],
    work: Work,
    *,
    write: Write,
    report: Reporter,
    metrics: FlowMetrics | None = None,
) -> Result:
    """Run steps as a flow.

    Args:
        name: of the flow, as users see it.
        write: stores the state's data.
        metrics: where to count the steps; nowhere if None.

    Raises:
        FlowFailed: steps failed; it contains all of their errors.
    """
    graph, saver = graph_of(name, steps, work), Saver(work.state, write)
    work.save = saver.flush
    return await run(
        graph,
        saver=saver,
        progress=Progress(graph, report),
        observers=[metrics.of(name)] if metrics else [],
        settings=_SETTINGS,
    )
