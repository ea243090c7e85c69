"""Check a Garden at rest: it costs little, and reacts to changes of the objects that it names.

The requests are those of all controllers together, as the operator's own process counts them.
"""

import asyncio
import base64
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.pki import Token, kubeconfig
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import until
from tests.support.garden_states import has_succeeded, reconciled_after
from tests.support.garden_world import RECONCILE
from tests.support.gardens import GARDENER, with_values

_LOCAL: Final = Key("", "local")
_NAMED: Final = Key("garden", "webhooks")
_PATIENCE: Final = 600.0
_READS: Final = 40
_WRITES: Final = 5
_RUNS: Final = 3
_REPORT_SECONDS: Final = 5.0
"""The shortest time between two reports of progress of one flow."""


def referring(garden: JsonObject) -> JsonObject:
    """Return the Garden with a reference to the Secret of `webhooks`."""
    plugin = {"name": "ValidatingAdmissionWebhook", "kubeconfigSecretName": _NAMED.name}
    return with_values(garden, {f"{GARDENER}.gardenerAPIServer.admissionPlugins": [plugin]})


def webhooks(token: str) -> JsonObject:
    """Return a Secret with the kubeconfig of admission webhooks."""
    text = dump(kubeconfig("webhooks", "https://webhooks.example.org", b"", Token(token)))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _NAMED.name, "namespace": _NAMED.namespace},
        "data": {"kubeconfig": base64.b64encode(text.encode()).decode()},
    }


async def rests(client: Client, metrics: Metrics) -> None:
    """Assert that a reconciled Garden, which refers to a Secret, is at rest.

    Args:
        metrics: The metrics of its operator.
    """
    costs = _Costs(metrics)
    await _has_ended(client, costs)
    await _costs_little(client, costs)
    await _ignores_what_it_does_not_name(client, costs)
    await _notices_what_it_names(client, costs)


class _Costs:
    """The requests of a process so far, by its metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @property
    def reads(self) -> int:
        return self._sum("rest_client_requests_total", method="GET")

    @property
    def writes(self) -> int:
        return self._sum("rest_client_requests_total") - self.reads

    @property
    def reconciled(self) -> int:
        return self._sum("controller_runtime_reconcile_total", controller="garden")

    @property
    def running(self) -> int:
        return self._sum("controller_runtime_active_workers", controller="garden")

    @property
    def seconds(self) -> float:
        """The total duration of flows in seconds."""
        return sum(
            sample.value
            for family in self._metrics.registry.collect()
            for sample in family.samples
            if sample.name == "flow_duration_seconds_sum"
        )

    def _sum(self, name: str, **labels: str) -> int:
        samples = (
            sample for family in self._metrics.registry.collect() for sample in family.samples
        )
        return sum(
            int(sample.value)
            for sample in samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


async def _costs_little(client: Client, costs: _Costs) -> None:
    """Reconcile a few times, and check the number of requests of the cheapest run.

    The others may include watches that reconnect, because an API server of the virtual cluster
    started a moment ago.
    """
    runs = [await _run(client, costs) for _ in range(_RUNS)]
    assert min(reads for reads, _ in runs) <= _READS
    assert min(writes for _, writes in runs) <= _WRITES


async def _run(client: Client, costs: _Costs) -> tuple[int, int]:
    """Reconcile once more, and return the number of reads and of writes.

    Reports of progress are left out, because a slow machine writes more of them. So is the write
    that takes the user's request off the Garden.
    """
    reads, writes, seconds = costs.reads, costs.writes, costs.seconds
    last = await client.patch(GARDEN, _LOCAL, RECONCILE)
    await until(client, GARDEN, _LOCAL, reconciled_after(last), patience=_PATIENCE)
    await _has_ended(client, costs)
    reports = int((costs.seconds - seconds) // _REPORT_SECONDS)
    return costs.reads - reads, costs.writes - writes - reports - 1


async def _has_ended(client: Client, costs: _Costs) -> None:
    """Return when a run has succeeded and is counted, which is a moment later."""
    await until(client, GARDEN, _LOCAL, has_succeeded, patience=_PATIENCE)
    async with asyncio.timeout(_PATIENCE):
        while costs.running:
            await client.get_raw("/version")


async def _ignores_what_it_does_not_name(client: Client, costs: _Costs) -> None:
    before = costs.reconciled
    other = {**webhooks("other"), "metadata": {"name": "other", "namespace": "garden"}}
    await client.create(other)
    await client.patch(SECRET, Key.of(other), {"data": None})
    await client.delete(SECRET, Key.of(other))
    # A later trigger, seen by the same watch, has caused only one run.
    await client.patch(SECRET, _NAMED, {"metadata": {"labels": {"any": "label"}}})
    assert costs.reconciled == before


async def _notices_what_it_names(client: Client, costs: _Costs) -> None:
    """The new content reaches the API server that uses it, by the next reconciliation."""
    before = costs.reconciled
    await client.patch(SECRET, _NAMED, {"data": webhooks("new")["data"]})
    async with asyncio.timeout(_PATIENCE):
        while costs.reconciled == before:
            await client.get_raw("/version")
    await _has_ended(client, costs)
    given = [
        base64.b64decode(value).decode()
        for secret in await client.list(SECRET, "garden")
        if name_of(secret).startswith("gardener-apiserver-admission-kubeconfigs-")
        for value in map_at(secret, "data").values()
    ]
    assert any("token: new" in text for text in given)
