"""The metrics of rotations: the age of credentials, and the duration of phases."""

from datetime import UTC, datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.patches import apply_merge_patch
from pergola.kube.transport import Transport
from pergola.operator.rotation.metrics import CredentialAges, RotationPhases
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import Packed, packed
from pergola.runtime.clock import FakeClock
from tests.support.cluster_config import cluster_config
from tests.support.gardens import MINIMAL

NOW: Final = datetime(2026, 1, 20, 3, 4, 5, tzinfo=UTC)
DAY: Final = 86400.0


def cache(gvk: GroupVersionKind) -> Cache[Packed]:
    """Return a cache that tests fill."""
    return Cache(Client(Transport(cluster_config())), gvk, packed)


async def test_each_credential_has_the_age_of_its_newest_secret() -> None:
    registry, secrets = CollectorRegistry(), cache(SECRET)
    metric = CredentialAges(registry)
    metric.follow(secrets)
    metric.clock = FakeClock(NOW)
    issued = {"ca-1": ("ca", 100), "ca-2": ("ca", 91), "ca-garden-runtime-1": ("other", 300)}
    for name, (credential, days) in issued.items():
        secrets.observe(secret(name, credential, NOW - timedelta(days=days)))

    found = {
        sample.labels["credential"]: sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    assert found == {"ca": 91 * DAY}


def secret(name: str, credential: str, issued: datetime) -> JsonObject:
    labels = {
        "managed-by": "secrets-manager",
        "manager-identity": "gardener-operator",
        "name": credential,
        "issued-at-time": str(int(issued.timestamp())),
    }
    return {"metadata": {"name": name, "namespace": "garden", "labels": labels}}


async def test_the_age_of_a_phase_grows_until_the_phase_ends() -> None:
    registry, gardens = CollectorRegistry(), cache(GARDEN)
    metric = RotationPhases(registry)
    metric.follow(gardens)
    clock = metric.clock = FakeClock(NOW)
    assert ages(registry) == {}

    gardens.observe(garden("Prepared", "lastInitiationFinishedTime"))
    clock.set(NOW + timedelta(days=15))
    assert ages(registry) == {("certificateAuthorities", "Prepared"): 15 * DAY}

    gardens.observe(garden("Completed", "lastCompletionTime"))
    assert ages(registry) == {("certificateAuthorities", "Completed"): 15 * DAY}


def garden(phase: str, time: str) -> JsonObject:
    """Return a Garden whose rotation of authorities entered a phase now."""
    rotation = {"phase": phase, time: NOW.isoformat()}
    status = {"credentials": {"rotation": {"certificateAuthorities": rotation}}}
    return apply_merge_patch(MINIMAL, {"status": status})


def ages(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["rotation"], sample.labels["phase"]): sample.value
        for family in registry.collect()
        for sample in family.samples
    }
