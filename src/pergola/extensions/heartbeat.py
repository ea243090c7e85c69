"""The Lease that an extension renews to report that it is alive (spec 40 §2.5)."""

import asyncio
from datetime import UTC, datetime
from typing import Final, NoReturn

from pergola.api.kinds import LEASE
from pergola.api.objects import JsonObject, Key
from pergola.extension_api.errors import ExtensionError
from pergola.extension_api.heartbeat import LABEL, NAME
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.logging import get_logger

log = get_logger("heartbeat")

RENEW_SECONDS: Final = 30
_FIRST_RETRY_SECONDS: Final = 0.1


class HeartbeatError(ExtensionError):
    """The heartbeat has a configuration that cannot work."""


class Heartbeat:
    """The renewal of an extension's Lease, by the leader of its replicas.

    Args:
        name: the extension's name, such as `networking-calico`.
        namespace: where the extension runs.
        seconds: the interval between renewals.
        is_first: whether it is the first extension of its process. Its Lease has the well-known
            name; the Leases of the others have a label, so that extensions do not share one Lease.

    Raises:
        HeartbeatError: `seconds` is not positive, or the namespace is missing.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        *,
        is_first: bool = True,
        seconds: int = RENEW_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        if seconds <= 0:
            raise HeartbeatError("--heartbeat-renew-interval-seconds must be greater than 0")
        if not namespace:
            raise HeartbeatError(
                "the heartbeat has no namespace: set --heartbeat-namespace, or the variable "
                "LEADER_ELECTION_NAMESPACE"
            )
        self._client = client
        self._name = name
        self._key = Key(namespace, NAME if is_first else f"{NAME}-{name}")
        self._labels = {} if is_first else {LABEL: name}
        self._seconds = seconds
        self._clock = clock or SystemClock()

    async def run(self) -> NoReturn:
        """Renew the Lease at once and then at each interval, until cancelled.

        Failures are retried soon, with growing pauses that never exceed the interval: a heartbeat
        must be back as soon as the API server is.
        """
        retry = _FIRST_RETRY_SECONDS
        while True:
            try:
                await self.beat()
            except KubeError as error:
                log.error("heartbeat failed", lease=str(self._key), error=str(error))
                await asyncio.sleep(min(retry, self._seconds))
                retry = min(retry * 2, float(self._seconds))
            else:
                retry = _FIRST_RETRY_SECONDS
                await asyncio.sleep(self._seconds)

    async def beat(self) -> JsonObject:
        """Renew the Lease once, or create it; keep fields set by others.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        spec = lease_spec(self._name, self._seconds, self._clock.now())
        try:
            return await self._client.patch(LEASE, self._key, {"spec": spec})
        except NotFound:
            return await self._client.create(_lease(self._key, self._labels, spec))


def lease_spec(name: str, seconds: int, now: datetime) -> JsonObject:
    """Return the spec of the Lease of a running extension."""
    return {
        "holderIdentity": name,
        "leaseDurationSeconds": seconds,
        "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


def _lease(key: Key, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": key.name, "namespace": key.namespace}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": metadata,
        "spec": spec,
    }
