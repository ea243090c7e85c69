"""Labels that every object of a ManagedResource gets (spec 10 §5.2)."""

import copy

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.labels import LabelError, inject_labels

LABELS = {"foo": "bar", "resources.gardener.cloud/managed-by": "gardener"}


def test_an_object_without_labels_gets_them() -> None:
    assert inject_labels({"kind": "ConfigMap"}, LABELS)["metadata"] == {"labels": LABELS}


def test_injected_labels_take_precedence_and_others_are_kept() -> None:
    obj = {"metadata": {"name": "a", "labels": {"foo": "mine", "other": "mine"}}}

    found = inject_labels(obj, LABELS)

    assert found["metadata"] == {"name": "a", "labels": {**LABELS, "other": "mine"}}


def test_pod_templates_and_claim_templates_get_them_too() -> None:
    obj = {
        "spec": {
            "replicas": 1,
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}, {}],
        }
    }

    spec = inject_labels(obj, LABELS)["spec"]

    assert spec["replicas"] == 1
    assert spec["template"] == {"metadata": {"labels": {"app": "a", **LABELS}}, "spec": {}}
    assert [claim["metadata"] for claim in spec["volumeClaimTemplates"]] == [
        {"name": "data", "labels": LABELS},
        {"labels": LABELS},
    ]


def test_the_templates_of_cron_jobs_are_not_labelled() -> None:
    obj: JsonObject = {"spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}

    assert inject_labels(obj, LABELS)["spec"] == obj["spec"]


@pytest.mark.parametrize("template", [None, "text", [{}]])
def test_a_template_that_is_not_a_map_is_unchanged(template: object) -> None:
    assert inject_labels({"spec": {"template": template}}, LABELS)["spec"] == {"template": template}


def test_a_claim_template_that_is_not_a_map_is_an_error_with_its_path() -> None:
    with pytest.raises(LabelError, match=r"spec\.volumeClaimTemplates\[1\] must be a map"):
        inject_labels({"spec": {"volumeClaimTemplates": [{}, "text"]}}, LABELS)


def test_the_manifest_is_not_changed() -> None:
    obj: JsonObject = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"template": {"metadata": {"labels": {}}}, "volumeClaimTemplates": [{}]},
    }
    before = copy.deepcopy(obj)

    inject_labels(obj, LABELS)

    assert obj == before
