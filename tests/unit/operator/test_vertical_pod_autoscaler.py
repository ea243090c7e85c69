"""The vertical pod autoscaler (spec 20 §13)."""

from pergola.api.objects import JsonObject, name_of
from pergola.garden.components.vertical_pod_autoscaler.objects import (
    VERTICAL_POD_AUTOSCALER,
    absent,
    render,
)
from pergola.garden.components.vertical_pod_autoscaler.programs import PROGRAMS, settings
from tests.support.garden import landscape

ADMISSION_CONTROLLER, RECOMMENDER, UPDATER = PROGRAMS


def settings_patch(**values: object) -> JsonObject:
    chosen = {"settings": {"verticalPodAutoscaler": values}}
    return {"spec": {"runtimeCluster": chosen}}


def test_a_cluster_with_its_own_autoscaler_gets_none() -> None:
    assert absent(landscape(settings_patch(enabled=False)))
    assert absent(landscape()) is None
    assert absent(landscape({"spec": {"runtimeCluster": {"settings": None}}})) is None


def test_feature_gates_are_passed_to_all_programs() -> None:
    chosen = landscape(settings_patch(featureGates={"InPlaceOrRecreate": True, "A": False}))
    for program in PROGRAMS:
        assert "--feature-gates=A=false,InPlaceOrRecreate=true" in settings(program, chosen)


def test_only_the_recommender_gets_the_highest_recommendation() -> None:
    chosen = landscape(settings_patch(maxAllowed={"cpu": "4", "memory": "16Gi"}))
    limits = [arg for arg in settings(RECOMMENDER, chosen) if "max-allowed" in arg]
    assert limits == [
        "--container-recommendation-max-allowed-cpu=4",
        "--container-recommendation-max-allowed-memory=16Gi",
    ]
    assert not any("max-allowed" in arg for arg in settings(UPDATER, chosen))


def test_its_webhook_runs_last_and_never_blocks_a_pod() -> None:
    [managed] = render(landscape()).managed
    [config] = [obj for obj in managed.objects if obj["kind"] == "MutatingWebhookConfiguration"]
    [webhook] = config["webhooks"]
    assert name_of(config).startswith("zzz-")
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["clientConfig"]["caBundle"] == "YnVuZGxl"


def test_the_recommender_does_not_scale_itself() -> None:
    [managed] = VERTICAL_POD_AUTOSCALER.objects(landscape()).managed
    scaled = [name_of(obj) for obj in managed.objects if obj["kind"] == "VerticalPodAutoscaler"]
    assert scaled == ["vpa-admission-controller", "vpa-updater"]
