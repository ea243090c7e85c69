"""Why an object of another operator is not ready: its StatefulSet, or that operator."""

from collections.abc import Awaitable, Callable
from typing import Final

from pergola.api.kinds import DEPLOYMENT, STATEFUL_SET
from pergola.api.objects import Identity, JsonObject, Key, name_of, namespace_of
from pergola.garden.landscape import NAMESPACE
from pergola.why.answer import Statement
from pergola.why.health.details import Details
from pergola.why.reading import Reader

Walk = Callable[[Identity], Awaitable[Statement | None]]
"""Returns the problem of another object, or None if it has none."""

_DRUID: Final = Identity(DEPLOYMENT, Key(NAMESPACE, "etcd-druid"))
_MONITORING: Final = Identity(DEPLOYMENT, Key(NAMESPACE, "prometheus-operator"))


async def etcd_details(reader: Reader, etcd: JsonObject, walk: Walk) -> Details:
    """Return why the StatefulSet of an Etcd is not ready, and whether etcd-druid runs."""
    return await _operated(reader, Key.of(etcd), _DRUID, walk)


async def monitoring_details(reader: Reader, obj: JsonObject, walk: Walk) -> Details:
    """Return why the StatefulSet of a Prometheus or an Alertmanager is not ready."""
    name = f"{str(obj.get('kind')).lower()}-{name_of(obj)}"
    return await _operated(reader, Key(namespace_of(obj), name), _MONITORING, walk)


async def _operated(reader: Reader, key: Key, operator: Identity, walk: Walk) -> Details:
    """Return the problems of a StatefulSet, or about its operator if that is the cause."""
    workload = Identity(STATEFUL_SET, key)
    found = [await walk(workload)]
    if found[0] is None or await reader.is_missing(*workload):
        found.insert(0, await walk(operator))
    return Details(tuple(each for each in found if each is not None))
