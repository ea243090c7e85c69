from datetime import timedelta
from typing import Any

import pytest

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.resource_manager_config import (
    API_VERSION,
    KIND,
    ConfigurationInvalid,
    Loaded,
    configuration_from,
)

FILE: JsonObject = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "leaderElection": {"leaderElect": False},
}


def at(path: str, value: Any) -> JsonObject:
    """Return a valid configuration, with `value` at `path`."""
    first, _, rest = path.partition(".")
    nested = value
    for step in reversed(rest.split(".") if rest else []):
        nested = {step: nested}
    return {**FILE, first: nested}


def load(path: str, value: Any) -> Loaded:
    return configuration_from(at(path, value))


def problems(value: JsonValue) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as caught:
        configuration_from(value)
    return [str(finding) for finding in caught.value.findings]


@pytest.mark.parametrize(
    ("section", "old", "new"),
    [
        ("controllers", "managedResource", "managedResources"),
        ("controllers", "node", "nodeCriticalComponents"),
        ("controllers", "kubeletCSRApprover", "csrApprover"),
    ],
)
def test_old_and_new_names_mean_the_same(section: str, old: str, new: str) -> None:
    settings = {"concurrentSyncs": 7}

    assert load(f"{section}.{old}", settings) == load(f"{section}.{new}", settings)
    same = load(section, {old: settings, new: settings})
    assert same == load(f"{section}.{new}", settings)
    assert problems(at(section, {old: {"concurrentSyncs": 8}, new: settings})) == [
        (
            f"{section}.{old}.concurrentSyncs: contradicts {section}.{new}.concurrentSyncs, "
            "the other spelling; keep one of them"
        )
    ]


def test_settings_may_be_spread_over_both_names() -> None:
    blocks = {"managedResource": {"syncPeriod": "1h"}, "managedResources": {"concurrentSyncs": 9}}

    resources = load("controllers", blocks).config.controllers.managed_resources

    assert (resources.sync_period, resources.concurrent_syncs) == (timedelta(hours=1), 9)


def test_equal_durations_in_different_notations_do_not_conflict() -> None:
    blocks = {
        "managedResource": {"syncPeriod": "60s"},
        "managedResources": {"syncPeriod": "1m"},
    }

    assert load("controllers", blocks).warnings == []


def test_findings_use_the_name_that_the_file_has() -> None:
    assert problems(at("controllers.managedResource.syncPeriod", "1s")) == [
        "controllers.managedResource.syncPeriod: must be at least 15s"
    ]
    assert problems(at("controllers.node", {"enabled": True, "backoff": "0s"})) == [
        "controllers.node.backoff: must be greater than 0"
    ]
    assert load("controllers.node.backof", "1s").warnings == [
        'controllers.node.backof: is not a known field and has no effect; did you mean "backoff"?'
    ]


def test_the_misspelt_token_validator_is_accepted_with_a_warning() -> None:
    loaded = configuration_from(
        {
            **FILE,
            "controllers": {"tokenValidator": {"enabled": True}},
            "webhooks": {"tokenValidator": {"enabled": True}},
        }
    )

    assert loaded.config.controllers.token_invalidator.workers == 5
    assert loaded.config.webhooks.token_invalidator.enabled
    assert loaded.warnings == [
        'controllers.tokenValidator: should be spelled "tokenInvalidator"',
        'webhooks.tokenValidator: should be spelled "tokenInvalidator"',
    ]
