"""The TokenRequestor beyond its contract: mistakes, kills, rate limits, reports."""

import asyncio
from datetime import timedelta

import pytest

from pergola.api.kinds import EVENT, SECRET
from pergola.api.objects import (
    Key,
)
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.memory import BURST
from pergola.resource_manager.controllers.token_requestor.observe import token_of
from pergola.runtime.controlling.controller import Again
from tests.support.token_clusters import (
    NEARLY,
    TWELVE_HOURS,
    Clusters,
    kubeconfig_with,
)

# Beyond


async def test_all_mistakes_are_reported_at_once(clusters: Clusters) -> None:
    wrong = {names.NAME: None, names.NAMESPACE: "a/b", names.LABELS: "[]", names.EXPIRATION: "5m"}
    await clusters.put(annotations=wrong, data={"kubeconfig": b"[]"})
    async with clusters.start():
        note = await clusters.warning("InvalidTokenRequest")
        await clusters.settle()
        assert clusters.taken() == []
    for name in wrong:
        assert f"metadata.annotations[{name}]" in note
    assert "data[kubeconfig]" in note


async def test_a_secret_that_is_its_own_target_is_reported(clusters: Clusters) -> None:
    itself = {names.TARGET_NAME: "access", names.TARGET_NAMESPACE: clusters.namespace}
    await clusters.put(annotations=itself, data={"token": b"foo"})
    clusters.target_recorder = clusters.source_recorder
    clusters.target_namespace = clusters.namespace
    async with clusters.start():
        assert "names this Secret itself" in await clusters.warning("InvalidTokenRequest")
        await clusters.settle()
        assert clusters.taken() == []


async def test_several_secrets_can_share_a_service_account(
    clusters: Clusters,
) -> None:
    secrets = [f"access-{number}" for number in range(5)]
    for name in secrets:
        await clusters.put(name)
    async with clusters.start():
        for name in secrets:
            await clusters.issued(name)
        await clusters.settle()
    assert await clusters.source.list(EVENT, clusters.namespace) == []


async def test_a_run_killed_before_writing_the_secret_is_continued(
    clusters: Clusters,
) -> None:
    before = await clusters.put()
    clusters.source_recorder.before_patch = asyncio.Event()
    async with clusters.start():
        await clusters.source_recorder.before_patch.wait()
    assert await clusters.has_account()
    assert await clusters.secret() == before
    clusters.source_recorder.before_patch = None
    clusters.taken()
    async with clusters.start():
        await clusters.issued()
        await clusters.settle()
    assert not [write for write in clusters.taken() if write.startswith("create ServiceAccount")]


async def test_a_run_killed_between_both_secrets_is_continued(
    clusters: Clusters,
) -> None:
    await clusters.put(annotations=clusters.to_target, data={"kubeconfig": kubeconfig_with()})
    clusters.source_recorder.before_patch = asyncio.Event()
    async with clusters.start():
        await clusters.source_recorder.before_patch.wait()
    clusters.source_recorder.before_patch = None
    async with clusters.start():
        assert token_of(await clusters.moved())


async def test_clock_skew_causes_no_hot_loop(clusters: Clusters) -> None:
    clusters.clock.set(clusters.clock.now() + timedelta(hours=1))
    await clusters.put(annotations={names.EXPIRATION: "10m"})
    async with clusters.start():
        await clusters.issued()
        await clusters.settle()
        assert len([w for w in clusters.taken() if w.startswith("create/token")]) == 1
        outcome = await clusters.reconcile()
        assert isinstance(outcome, Again)
        assert 30 < outcome.seconds <= 60


async def test_an_owner_that_removes_each_token_is_notified_of_the_delay(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start(minimum_interval=3600.0):
        for _ in range(BURST):
            await clusters.issued()
            await clusters.settle()
            await clusters.annotate(RENEW=None)
        note = await clusters.warning("TokenDelayed")
        assert f"{BURST} tokens were issued in short succession" in note


async def test_a_missing_namespace_is_reported_with_the_service_account(
    clusters: Clusters,
) -> None:
    await clusters.put(annotations={names.NAMESPACE: "does-not-exist"})
    async with clusters.start():
        note = await clusters.warning("TokenRenewalFailed")
        assert "cannot create ServiceAccount does-not-exist/robot" in note


async def test_an_expiring_token_that_cannot_be_renewed_is_reported(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start(minimum_interval=0.0):
        await clusters.issued()
        await clusters.settle()
        clusters.target_recorder.unreachable = True
        clusters.clock.set(clusters.clock.now() + timedelta(hours=11))
        with pytest.raises(KubeError):
            await clusters.reconcile()
        assert "less than 10%" in await clusters.warning("TokenExpiresSoon")
        shown = clusters.metrics.render().decode()
    of = f'name="access",namespace="{clusters.namespace}"'
    (remaining,) = values(shown, f"pergola_token_requestor_seconds_until_expiry{{{of}}}")
    assert abs(remaining - 3600) < NEARLY.total_seconds()
    assert values(shown, f"pergola_token_requestor_failed_renewals_total{{{of}}}") == [1.0]


async def test_a_mistake_is_reported_again_when_the_token_is_about_to_expire(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        await clusters.annotate(EXPIRATION="unparsable")
        await clusters.warning("InvalidTokenRequest")
        outcome = await clusters.reconcile()
        assert isinstance(outcome, Again)
        assert abs(outcome.seconds - 0.9 * TWELVE_HOURS.total_seconds()) < NEARLY.total_seconds()
        clusters.clock.set(clusters.clock.now() + timedelta(seconds=outcome.seconds + 60))
        await clusters.reconcile()
        await clusters.warning("TokenExpiresSoon")


async def test_the_metrics_of_a_deleted_secret_are_removed(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        await clusters.settle()
        assert clusters.namespace in clusters.metrics.render().decode()
        await clusters.source.delete(SECRET, Key(clusters.namespace, "access"))
        await clusters.settle()
        assert clusters.namespace not in clusters.metrics.render().decode()


def values(shown: str, series: str) -> list[float]:
    return [float(line.split()[-1]) for line in shown.splitlines() if line.startswith(series)]
