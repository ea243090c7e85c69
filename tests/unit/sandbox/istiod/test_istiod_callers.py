"""The addresses by which istiod identifies gateways."""

import pytest

from pergola.api.objects import JsonObject
from pergola.sandbox.istiod.callers import address_of


def pod(phase: str = "Running", **spec: object) -> JsonObject:
    return {"spec": spec, "status": {"phase": phase, "podIP": "10.64.0.7"}}


def test_a_pod_is_identified_by_its_address() -> None:
    assert address_of(pod()) == "10.64.0.7"
    assert address_of({"spec": {}}) == ""


@pytest.mark.parametrize(
    "other",
    [pod(hostNetwork=True), pod("Succeeded"), pod("Failed")],
    ids=["host", "ended", "failed"],
)
def test_a_shared_address_identifies_no_pod(other: JsonObject) -> None:
    assert address_of(other) == ""
