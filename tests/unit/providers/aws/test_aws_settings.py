"""The environment variables of the extension's process: spec 30 §4.3, §7.2."""

from datetime import timedelta

import pytest

from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws.actuator import (
    BACKUP_GRACE,
    PERMISSIONS_BOUNDARY,
    REMOVE_POD_ROUTES,
    TAG_WORKER_SUBNETS,
    AwsInfrastructure,
    AwsSettings,
    settings_from,
)
from pergola.providers.aws.bastion import AwsBastion

BOUNDARY = "arn:aws:iam::123456789012:policy/nodes"


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({}, AwsSettings(tag_worker_subnets=True, remove_pod_routes=False)),
        ({TAG_WORKER_SUBNETS: "", REMOVE_POD_ROUTES: ""}, AwsSettings()),
        ({TAG_WORKER_SUBNETS: "false"}, AwsSettings(tag_worker_subnets=False)),
        ({REMOVE_POD_ROUTES: "true"}, AwsSettings(remove_pod_routes=True)),
        ({TAG_WORKER_SUBNETS: "True", REMOVE_POD_ROUTES: "False"}, AwsSettings()),
        ({BACKUP_GRACE: "24h"}, AwsSettings(backup_grace=timedelta(days=1))),
        ({BACKUP_GRACE: "0"}, AwsSettings()),
        ({PERMISSIONS_BOUNDARY: BOUNDARY}, AwsSettings(permissions_boundary=BOUNDARY)),
    ],
)
def test_each_variable_switches_its_feature(
    environment: dict[str, str], settings: AwsSettings
) -> None:
    assert settings_from(environment) == settings


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({TAG_WORKER_SUBNETS: "no"}, f'{TAG_WORKER_SUBNETS} is "no"; write true or false'),
        (
            {TAG_WORKER_SUBNETS: "0", REMOVE_POD_ROUTES: "yes"},
            f'{TAG_WORKER_SUBNETS} is "0" and {REMOVE_POD_ROUTES} is "yes"; write true or false',
        ),
    ],
)
def test_an_invalid_boolean_is_reported_in_one_sentence(
    environment: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ExtensionError) as raised:
        settings_from(environment)
    assert str(raised.value) == sentence


@pytest.mark.parametrize("said", ["soon", "-1h"])
def test_an_invalid_grace_period_is_reported_in_one_sentence(said: str) -> None:
    with pytest.raises(ExtensionError, match=f'{BACKUP_GRACE} is "{said}"; write a duration'):
        settings_from({BACKUP_GRACE: said})


@pytest.mark.parametrize("said", ["nodes", "arn:aws:iam::1:policy/x", "arn:aws:iam::aws:role/x"])
def test_an_invalid_permissions_boundary_is_reported_in_one_sentence(said: str) -> None:
    with pytest.raises(ExtensionError, match=f'{PERMISSIONS_BOUNDARY} is "{said}"; write an ARN'):
        settings_from({PERMISSIONS_BOUNDARY: said})


@pytest.mark.parametrize("actuator", [AwsInfrastructure, AwsBastion])
def test_no_aws_actuator_starts_with_an_invalid_variable(
    actuator: type[AwsInfrastructure | AwsBastion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REMOVE_POD_ROUTES, "on")
    with pytest.raises(ExtensionError, match="write true or false"):
        actuator()
