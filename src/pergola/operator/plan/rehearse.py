"""Rehearsal of a reconciliation: its tasks run in order, with a client that sends no writes."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pergola.api.marks import OPERATOR_FINALIZER
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import GARDEN, Garden, garden_from
from pergola.garden.components.catalog import CATALOG
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.kube.finalizers import add_finalizer
from pergola.kube.patches import apply_merge_patch
from pergola.operator.oldest import check_only_one
from pergola.operator.plan.client import Rehearsal
from pergola.operator.plan.doubles import RehearsedVirtualCluster, no_snapshot
from pergola.operator.plan.model import Change, Fate, Plan, Planned
from pergola.operator.plan.sentences import AFTERWARDS, BEFORE, CREDENTIALS, SENTENCES
from pergola.operator.plan.stage import Stage
from pergola.operator.reconcile import flows, operation, prepare
from pergola.operator.reconcile.judge import check
from pergola.operator.reconcile.placeholders import with_referenced
from pergola.operator.reconcile.reconcile import IGNORE, is_ignored
from pergola.operator.rotation import schedule
from pergola.operator.run.build import Built, open_secrets
from pergola.operator.run.observed import Template, observe
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import Reach
from pergola.pki import KeyAlgorithm
from pergola.runtime.clock import Clock, SystemClock
from pergola.secrets_manager import Certificate, CertificateAuthority, SecretConfig
from pergola.secrets_manager.configs import Inputs, SecretData

_ROTATIONS: Final = (
    "certificate_authorities",
    "service_account_key",
    "etcd_encryption_key",
    "workload_identity_key",
)


async def rehearse(
    client: Client,
    garden: JsonObject,
    template: Template,
    *,
    reach: Reach | None = None,
    clock: Clock | None = None,
) -> Plan:
    """Return what a reconciliation of a Garden would do now, without writing anything.

    Args:
        client: Of the runtime cluster.
        garden: With all its defaults; it need not be the live one.
        reach: Modifies how the virtual cluster is reached.

    Raises:
        Malformed: The Garden has values of wrong types.
        OperatorError: The landscape cannot be built; the text gives the reason.
        SecretLost: A credential that cannot be replaced is lost.
        SecretsManagerError: A credential cannot be adopted.
        KubeError: The API server refused, or did not answer.
    """
    clock = clock or SystemClock()
    garden = _begun(garden, clock)
    rehearsal = Rehearsal(client)
    rehearsal.assume(garden)
    observed = await observe(rehearsal, garden, template)
    landscape = with_referenced(observed.landscape)
    secrets = await open_secrets(rehearsal, landscape, clock, generate=_cheap)
    async with RehearsedVirtualCluster(rehearsal, reach) as virtual:
        stage = Stage(rehearsal, virtual)
        run = Run(
            client=rehearsal,
            clock=clock,
            deployer=stage.deployer,
            virtual=virtual,
            built=Built(landscape, secrets),
            note=stage.note,
            snapshot=no_snapshot,
        )
        await run.generate_irreplaceable(CATALOG)
        tasks = [_step(CREDENTIALS, await stage.changes()), await _prepared(stage, garden)]
        problem = await _problem(stage.runtime, Key.of(garden))
        for graph in (flows.setup(run), flows.reconciliation(run, Key.of(garden))):
            tasks += [await stage.planned(run, graph, task) for task in graph.order()]
        # A task that cannot be foreseen may use credentials that it has not generated.
        is_complete = all(task.fate is not Fate.UNKNOWN for task in tasks)
        await run.built.secrets.cleanup(is_complete=is_complete)
        tasks.append(_step(AFTERWARDS, await stage.changes()))
    return Plan(
        garden=name_of(garden),
        tasks=tasks,
        missing=observed.missing,
        problem=problem,
        rotations=tuple(_rotations(garden_from(garden))),
    )


def _begun(garden: JsonObject, clock: Clock) -> JsonObject:
    """Return a Garden with the status at the start of an operation."""
    now = clock.now()
    requested = [*operation.requested_by(garden), *schedule.due(garden, now)]
    status = operation.beginning(garden_from(garden), requested, now)
    return apply_merge_patch(garden, {"status": status})


async def _problem(client: Client, key: Key) -> str:
    """Return why a Garden would not be reconciled; empty if it would be.

    Args:
        client: Reads the Garden without the operations that have begun.
    """
    garden = await client.get(GARDEN, key)
    if is_ignored(garden):
        return f"the annotation {IGNORE} stops the reconciliation"
    try:
        with suppress(UnknownKind):
            await check_only_one(client, garden)
        check(garden_from(garden), any_version=False)
    except OperatorError as error:
        return str(error)
    return ""


def _rotations(garden: Garden) -> Iterator[str]:
    """Yield the rotations that are in progress."""
    credentials = garden.status.credentials if garden.status else None
    rotation = credentials.rotation if credentials else None
    for name in _ROTATIONS:
        part = getattr(rotation, name, None)
        if part is not None and part.phase not in ("", "Completed"):
            yield f"{name.replace('_', ' ')}: {part.phase}"


# Steps outside of the flows


def _cheap(config: SecretConfig, inputs: Inputs) -> SecretData:
    """Return valid data that takes little CPU time, and exists only in memory."""
    if isinstance(config, CertificateAuthority | Certificate):
        config = replace(config, algorithm=KeyAlgorithm.EC_P256)
    return config.generate(inputs)


async def _prepared(stage: Stage, garden: JsonObject) -> Planned:
    client, typed = stage.runtime, garden_from(garden)
    remaining = operation.remaining(garden)
    if remaining is not None:
        garden = await client.patch(GARDEN, Key.of(garden), remaining)
    await add_finalizer(client, GARDEN, garden, OPERATOR_FINALIZER)
    await prepare.check_autoscaler(client, typed)
    await prepare.apply_namespace(client, typed)
    return _step(BEFORE, await stage.changes())


def _step(name: str, changes: tuple[Change, ...]) -> Planned:
    return Planned(flow="", name=name, fate=Fate.RUN, why=SENTENCES[name], changes=changes)
