"""The flows as a whole: which steps there are, what they would do, and running them (spec 30 §3.3).

The same steps are drawn by `pergola aws plan` and run by the actuator.
"""

from dataclasses import replace
from typing import Final

from pergola.flow import Progress, Reporter, Result, Saver, Settings, State, Write, run
from pergola.flow.metrics import FlowMetrics
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.codes import diagnose
from pergola.providers.aws.deletion.network import deletion_steps
from pergola.providers.aws.step import Step, Work, graph_of
from pergola.providers.aws.steps import efs, iam, key_pair, names, security_group
from pergola.providers.aws.steps.byo import byo_steps
from pergola.providers.aws.steps.byo import names as byo
from pergola.providers.aws.steps.network import network_steps
from pergola.providers.aws.wanted import Wanted

RECONCILIATION: Final = "Infrastructure reconciliation"
DELETION: Final = "Infrastructure deletion"
_AFTER_READ: Final = (
    names.SERVICE_RANGE,
    names.EGRESS_RANGES,
    # Nothing is created before the subnets are accepted. And a state that knows these while it has
    # no records of tags would look like one that was never lost (`byo.records`).
    iam.ROLE,
    key_pair.NAME,
)
_SETTINGS: Final = Settings(diagnose=diagnose)


def reconcile_steps(wanted: Wanted) -> list[Step]:
    """All steps that create a cluster's infrastructure and keep it, in every mode."""
    read = (byo.READ,) if wanted.config.brings_subnets else ()
    steps = [
        *network_steps(wanted),
        *byo_steps(wanted, after=(names.VPC,)),
        *security_group.steps(wanted),
        *efs.steps(wanted),
        *iam.steps(wanted),
        *key_pair.steps(wanted),
    ]
    return [_after(step, read) for step in steps]


def delete_steps(wanted: Wanted, state: State, *, remove_pod_routes: bool = False) -> list[Step]:
    """All steps that remove it; what was brought only loses its tags.

    Args:
        remove_pod_routes: and its dead routes to pods, which stay otherwise (§7.2).
    """
    return deletion_steps(wanted, state, remove_pod_routes=remove_pod_routes)


def _after(step: Step, read: tuple[str, ...]) -> Step:
    """Return the step, which starts after the user's subnets were read if it has to."""
    return replace(step, after=(*step.after, *read)) if step.name in _AFTER_READ else step


def foresee(steps: list[Step], work: Work) -> dict[str, Note]:
    """What would become of each step, by its name; asks nothing and changes nothing in AWS."""
    return {
        step.name: Note(Fate.SKIP, step.skip) if step.skip else step.plan(work) for step in steps
    }


def name_zones(wanted: Wanted, state: State) -> None:
    """Gives each zone its `zN`: with that, the state of a new cluster is no longer empty.

    Only what has a state is ever deleted, so it is written before the first thing is created.
    """
    for zone in wanted.config.networks.zones:
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
    """Runs the steps as a flow.

    Args:
        name: of the flow, as users see it.
        write: stores the state's data.
        metrics: where the steps are counted; nowhere if None.

    Raises:
        FlowFailed: something went wrong; all of it is told.
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
