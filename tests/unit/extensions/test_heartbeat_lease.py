"""The Lease of a heartbeat, and its meaning for readers."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.heartbeat import is_alive
from pergola.extensions.heartbeat import Heartbeat, HeartbeatError, lease_spec
from pergola.kube.client import Client
from tests.support.cluster_config import cluster_config

NOW = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


def lease(renewed: datetime) -> JsonObject:
    return {
        "metadata": {"name": "gardener-extension-heartbeat", "namespace": "ext"},
        "spec": lease_spec("networking-calico", 30, renewed),
    }


def unreachable() -> Client:
    """Return a client of a server that does not exist and gets no requests."""
    return Client.connect(cluster_config())


def test_a_lease_names_the_extension_the_interval_and_the_time_in_microseconds() -> None:
    assert lease_spec("networking-calico", 30, NOW) == {
        "holderIdentity": "networking-calico",
        "leaseDurationSeconds": 30,
        "renewTime": "2026-05-04T03:02:01.123456Z",
    }


@pytest.mark.parametrize("seconds", [0, -1])
async def test_an_interval_that_is_not_positive_is_refused(seconds: int) -> None:
    async with unreachable() as client:
        with pytest.raises(HeartbeatError) as refused:
            Heartbeat(client, "x", "ext", seconds=seconds)
    assert str(refused.value) == "--heartbeat-renew-interval-seconds must be greater than 0"


async def test_without_a_namespace_the_error_says_where_to_set_it() -> None:
    async with unreachable() as client:
        with pytest.raises(HeartbeatError, match="set --heartbeat-namespace"):
            Heartbeat(client, "x", "")


@pytest.mark.parametrize(("age", "alive"), [(0, True), (300, True), (301, False)])
def test_an_extension_without_a_renewal_for_five_minutes_is_dead(age: int, alive: bool) -> None:
    found = is_alive(lease(NOW - timedelta(seconds=age)), NOW)
    if alive:
        assert found is None
    else:
        assert found == "extension networking-calico is not running since 2026-05-04T02:57:00Z"


def test_the_threshold_can_be_changed() -> None:
    assert is_alive(lease(NOW - timedelta(seconds=11)), NOW, stale=10) is not None


def test_a_missing_lease_and_one_without_a_time_are_reported() -> None:
    assert "has never run there" in (is_alive(None, NOW) or "")
    broken = lease(NOW)
    broken["spec"]["renewTime"] = "yesterday"
    expected = "Lease ext/gardener-extension-heartbeat has no renewTime"
    assert expected in (is_alive(broken, NOW) or "")
