"""Reasons to start the virtual resource manager with a client certificate (spec 20 §14)."""

from datetime import UTC, datetime

import pytest

from pergola.api.objects import JsonObject
from pergola.garden.components.resource_manager.bootstrap import bootstrap_reason
from pergola.garden.landscape.errors import OperatorError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RENEWAL = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
USER = "system:serviceaccount:kube-system:gardener-resource-manager"


def access(renewal: str | None = "2999-01-01T00:00:00Z") -> JsonObject:
    return {"metadata": {"annotations": {RENEWAL: renewal} if renewal is not None else {}}}


def binding(status: str = "True", message: str = "") -> JsonObject:
    condition = {"type": "ResourcesApplied", "status": status, "message": message}
    return {"status": {"conditions": [condition]}}


def test_a_token_with_permissions_is_no_reason_to_bootstrap() -> None:
    assert bootstrap_reason(access(), binding(), NOW) is None


@pytest.mark.parametrize(
    ("secret", "resource", "reason"),
    [
        (None, binding(), "Secret garden/shoot-access-gardener-resource-manager does not exist"),
        (access(None), binding(), "has no token yet"),
        (access("2026-01-02T03:04:04Z"), binding(), "was due for renewal at 2026-01-02T03:04:04Z"),
        (access(), None, "shoot-core-gardener-resource-manager does not exist"),
        (
            access(),
            binding("False", f'secrets is forbidden: User "{USER}" cannot list resource'),
            "its token is refused",
        ),
        (access(), binding("False", "cannot list: Unauthorized"), "its token is refused"),
    ],
)
def test_an_unusable_token_is_a_reason_to_bootstrap(
    secret: JsonObject | None, resource: JsonObject | None, reason: str
) -> None:
    found = bootstrap_reason(secret, resource, NOW)
    assert found is not None
    assert reason in found


def test_other_apply_failures_are_no_reason_to_bootstrap() -> None:
    assert bootstrap_reason(access(), binding("False", "conflict"), NOW) is None


def test_a_malformed_time_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(OperatorError, match="remove the annotation"):
        bootstrap_reason(access("tomorrow"), binding(), NOW)
