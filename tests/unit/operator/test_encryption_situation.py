"""Encrypted resources that are rewritten, for each row of the table in spec 20 §17.3."""

from typing import Final

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.encryption.situation import situation
from pergola.operator.rotation.phases import begun
from pergola.runtime.clock import SystemClock
from tests.support.gardens import MINIMAL

ALWAYS: Final = frozenset(
    {
        "secrets",
        "controllerdeployments.core.gardener.cloud",
        "controllerregistrations.core.gardener.cloud",
        "internalsecrets.core.gardener.cloud",
        "shootstates.core.gardener.cloud",
    }
)
NOTHING: Final[frozenset[str]] = frozenset()
MAPS: Final = frozenset({"configmaps"})


def garden(
    *resources: str,
    encrypted: list[str] | None = None,
    provider: str = "aescbc",
    phase: str = "",
    status: JsonObject | None = None,
) -> Garden:
    """Return a Garden.

    Args:
        resources: In its spec.
        encrypted: In its status; None for one without a provider in the status.
        status: More of its status.
    """
    config = {"resources": list(resources), "provider": {"type": provider}}
    spec = {"virtualCluster": {"kubernetes": {"kubeAPIServer": {"encryptionConfig": config}}}}
    credentials: JsonObject = {}
    if encrypted is not None:
        at_rest = {"resources": encrypted, "provider": {"type": "aescbc"}}
        credentials["encryptionAtRest"] = at_rest
    if phase:
        credentials["rotation"] = {"etcdEncryptionKey": {"phase": phase}}
    found = {"credentials": credentials, **(status or {})}
    return garden_from(apply_merge_patch(MINIMAL, {"spec": spec, "status": found}))


@pytest.mark.parametrize(
    ("case", "rewrites", "unlabels"),
    [
        pytest.param(garden(encrypted=[]), NOTHING, NOTHING, id="nothing pending"),
        pytest.param(garden(), ALWAYS, ALWAYS, id="a new Garden"),
        pytest.param(
            garden(encrypted=[], phase="Preparing"), ALWAYS, NOTHING, id="a key is prepared"
        ),
        pytest.param(garden(encrypted=[], phase="Prepared"), NOTHING, NOTHING, id="prepared"),
        pytest.param(garden(encrypted=[], phase="Completing"), NOTHING, ALWAYS, id="completing"),
        pytest.param(garden(encrypted=[], phase="Completed"), NOTHING, NOTHING, id="completed"),
        pytest.param(garden("configmaps", encrypted=[]), MAPS, MAPS, id="a resource is added"),
        pytest.param(garden(encrypted=["configmaps"]), MAPS, MAPS, id="a resource is removed"),
        pytest.param(
            garden("configmaps", encrypted=["pods"]),
            MAPS | {"pods"},
            MAPS | {"pods"},
            id="one is added, one is removed",
        ),
        pytest.param(
            garden("configmaps.", encrypted=["configmaps"]), NOTHING, NOTHING, id="spelled alike"
        ),
        pytest.param(
            garden("configmaps", encrypted=["pods"], phase="Preparing"),
            ALWAYS | MAPS | {"pods"},
            NOTHING,
            id="resources and the key change: the union",
        ),
        pytest.param(
            garden(encrypted=[], provider="secretbox", phase="Preparing"),
            ALWAYS,
            NOTHING,
            id="the provider changes: in Preparing",
        ),
        pytest.param(
            garden(encrypted=[], provider="secretbox", phase="Completing"),
            NOTHING,
            ALWAYS,
            id="the provider changes: in Completing",
        ),
        pytest.param(
            garden("configmaps", status={"encryptedResources": ["configmaps"]}),
            NOTHING,
            ALWAYS | MAPS,
            id="an older operator's Garden is only recorded",
        ),
    ],
)
def test_resources_are_rewritten_and_unlabelled_in_the_right_phase(
    case: Garden, rewrites: frozenset[str], unlabels: frozenset[str]
) -> None:
    found = situation(case)
    assert (found.rewrites, found.unlabels) == (rewrites, unlabels)
    assert (found.no_rewrite() is None) == bool(rewrites)
    assert (found.no_unlabelling() is None) == bool(unlabels)


def test_another_provider_starts_a_rotation_that_rewrites_objects() -> None:
    changed = garden(encrypted=[], provider="secretbox")
    patch = begun(changed, [], SystemClock().now())["etcdEncryptionKey"]
    assert (patch["phase"], patch["autoCompleteAfterPrepared"]) == ("Preparing", True)
