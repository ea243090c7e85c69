"""Schedulers of pods: spec 12 §11."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.pod_scheduler_name import PodSchedulerName, registrations
from tests.support.reviews import patched, pod, review_of

review = PodSchedulerName("bin-packing-scheduler")


@pytest.mark.parametrize(
    "spec", [{}, {"schedulerName": ""}, {"schedulerName": "default-scheduler"}]
)
def test_a_pod_without_a_scheduler_gets_the_configured_one(spec: JsonObject) -> None:
    changed = patched(given := pod(**spec), review(review_of(given)))
    assert changed["spec"]["schedulerName"] == "bin-packing-scheduler"
    assert review(review_of(changed)).edits == ()


def test_another_scheduler_is_kept() -> None:
    verdict = review(review_of(pod(schedulerName="bar-scheduler")))
    assert (verdict.allowed, verdict.edits) == (True, ())
    assert verdict.because == "the pod names the scheduler bar-scheduler"


def test_pods_are_created_while_the_webhook_is_down() -> None:
    (entry,) = registrations(Installation("target"))
    assert (entry.failure_policy, entry.namespace_selector) == ("Ignore", {})


def test_the_default_scheduler_can_be_configured() -> None:
    by_default = PodSchedulerName("default-scheduler")
    verdict = by_default(review_of(pod(schedulerName="default-scheduler")))
    assert verdict.because == "the scheduler is already default-scheduler"
