"""Webhooks of the operator respond to any request with a valid review, and never fail."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pergola.admission.webhook import handlers
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import Garden, default_garden
from pergola.api.schema import schema_of, validate
from pergola.kube.yaml import parse
from pergola.operator.webhooks.catalog import Dependencies, webhooks
from pergola.runtime.clock import FakeClock
from pergola.runtime.metrics import Metrics
from tests.support.fixed_lookups import FixedLookups
from tests.support.fuzzing import Fuzzed, Sample, examples, nearly
from tests.support.gardens import MINIMAL

pytestmark = pytest.mark.thorough("fuzz")

POLICY: Final = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"
CONFIG_MAP: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "audit-policy", "namespace": "garden"},
    "data": {"policy": POLICY},
}
NAMESPACE: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "garden"},
}
EXTENSION: Final[JsonObject] = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Extension",
    "metadata": {"name": "tools"},
    "spec": {
        "resources": [
            {
                "kind": "Extension",
                "type": "tools",
                "autoEnable": ["shoot"],
                "clusterCompatibility": ["garden", "shoot"],
                "lifecycle": {"reconcile": "AfterWorker"},
            },
            {"kind": "Worker", "type": "tools"},
        ],
        "deployment": {
            "extension": {
                "helm": {"ociRepository": {"ref": "a"}},
                "values": {"a": ["{{ .resources.b.data.c }}"]},
            },
            "admission": {"runtimeCluster": {"helm": {"ociRepository": {"repository": "a"}}}},
            "resources": [
                {"name": "b", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "b"}}
            ],
        },
    },
    "status": {"conditions": [{"type": "RequiredRuntime", "status": "True", "message": "a"}]},
}


def full_garden() -> JsonObject:
    path = Path(__file__).parents[3] / "examples" / "garden" / "every-field.yaml"
    garden = parse(path.read_text())
    assert isinstance(garden, dict)
    rotation = {"etcdEncryptionKey": {"phase": "Prepared"}}
    return garden | {"status": {"credentials": {"rotation": rotation}}}


GARDEN: Final = full_garden()
SAMPLES: Final = [
    Sample("operator.gardener.cloud", "gardens", GARDEN),
    Sample("operator.gardener.cloud", "extensions", EXTENSION),
    Sample("", "configmaps", CONFIG_MAP),
    Sample("", "namespaces", NAMESPACE),
]


def served() -> Fuzzed:
    lookups = FixedLookups(
        existing_extensions=[EXTENSION],
        config_maps={Key("garden", "audit-policy"): CONFIG_MAP},
    )
    return Fuzzed.of(webhooks(Dependencies(lookups, CLOCK)), Metrics())


CLOCK: Final = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
SERVED: Final = served()
PATHS: Final = list(handlers(webhooks(Dependencies(FixedLookups(), CLOCK))))


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=examples(), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_webhook_responds_to_every_request(path: str, data: st.DataObject) -> None:
    SERVED.check(data, path, SAMPLES)


@settings(max_examples=examples() * 2, suppress_health_check=list(HealthCheck))
@given(garden=nearly(GARDEN) | nearly(MINIMAL))
def test_defaulting_is_idempotent_and_keeps_valid_objects_valid(garden: JsonObject) -> None:
    defaulted = default_garden(garden)

    assert default_garden(defaulted) == defaulted
    if not validate(schema_of(Garden), garden):
        assert validate(schema_of(Garden), defaulted) == []
