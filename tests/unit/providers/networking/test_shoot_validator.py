"""The Shoots that a network plugin refuses, and its messages (spec 40 §5.2, §7.2, §7.3)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pergola.admission.review import Operation, Verdict
from pergola.api.field_errors import Cause, forbidden, unsupported
from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Value
from pergola.extension_api.cluster import Shoot
from pergola.extensions.webhooks.declare import enabled
from pergola.extensions.webhooks.shoot_mutator import KUBE_PROXY_OFF
from pergola.providers.networking.admission import admission_webhooks
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered
from pergola.providers.networking.shoot_validator import shoot_validator
from tests.support.reviews import review_of

PROXY = "spec.kubernetes.kubeProxy.enabled"
TEXT = (
    "Disabling kube-proxy is forbidden in conjunction with weft without running in ebpf dataplane"
)


class Config(Value):
    """The config of a plugin that routes Services only with eBPF."""

    backend: str | None = None
    """`loom` or `shuttle`."""
    ebpf: bool = False
    """Whether it routes Services."""


class Weft(NetworkPlugin[Config]):
    type = "weft"
    name = "networking-weft"
    config = Config

    def check(self, config: Config, families: Sequence[str]) -> Iterator[Cause]:
        if config.backend not in (None, "loom", "shuttle"):
            yield unsupported("backend", config.backend, ["loom", "shuttle"])
        if config.backend == "shuttle" and "IPv6" in families:
            yield forbidden("backend", "shuttle knows no IPv6")

    def check_shoot(self, config: Config, shoot: Shoot) -> Iterator[Cause]:
        if not shoot.kube_proxy_enabled and not config.ebpf:
            yield forbidden(PROXY, TEXT)

    def render(self, plan: Plan[Config]) -> Rendered:
        return Rendered(shoot=[])


WEBHOOK = shoot_validator(Weft(), "admission-weft")


def shoot(
    config: JsonObject | None = None, *, proxy: bool | None = None, **networking: Any
) -> JsonObject:
    spec: JsonObject = {
        "networking": {"type": "weft", "providerConfig": config, **networking},
        "provider": {"type": "gcp", "workers": [{"name": "w"}]},
        "kubernetes": {} if proxy is None else {"kubeProxy": {"enabled": proxy}},
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "web", "namespace": "garden-dev"},
        "spec": spec,
    }


def ask(new: JsonObject, old: JsonObject | None = None) -> Verdict:
    operation: Operation = "CREATE" if old is None else "UPDATE"
    verdict = WEBHOOK.handler(review_of(new, operation, old_object=old))
    assert isinstance(verdict, Verdict)
    return verdict


def fields(verdict: Verdict) -> list[str]:
    return [cause.field for cause in verdict.causes]


def test_it_receives_shoots_labelled_with_its_type() -> None:
    entry = WEBHOOK.registration
    assert (entry.name, entry.path, entry.kind) == (
        "validator.admission-weft.extensions.gardener.cloud",
        "/webhooks/validate",
        "validating",
    )
    assert entry.object_selector == {
        "matchLabels": {"networking.extensions.gardener.cloud/weft": "true"}
    }
    [rule] = entry.rules
    assert (rule.operations, rule.groups, rule.resources) == (
        ("CREATE", "UPDATE"),
        ("core.gardener.cloud",),
        ("shoots",),
    )


def test_a_valid_shoot_is_admitted() -> None:
    good = shoot(
        {"backend": "loom"},
        pods="10.0.0.0/16",
        nodes="10.1.0.0/16",
        services="10.2.0.0/16",
        ipFamilies=["IPv4", "IPv6"],
    )
    assert ask(good) == Verdict()
    assert ask(shoot()) == Verdict()


# Must hold


def test_disabling_kube_proxy_is_denied_if_nothing_else_routes_services() -> None:
    verdict = ask(shoot(proxy=False))
    assert (verdict.allowed, verdict.code) == (False, 422)
    assert verdict.causes == (Cause("FieldValueForbidden", f"Forbidden: {TEXT}", PROXY),)
    assert verdict.message == (
        f'Shoot.core.gardener.cloud "web" is invalid: {PROXY}: Forbidden: {TEXT}'
    )
    assert fields(ask(shoot(proxy=False), shoot())) == [PROXY]
    assert ask(shoot({"ebpf": True}, proxy=False)).allowed


@pytest.mark.parametrize("proxy", [None, True])
def test_with_kube_proxy_there_are_no_findings(proxy: bool | None) -> None:
    assert ask(shoot(proxy=proxy)).allowed


# The checks


def test_a_workerless_shoot_is_always_admitted() -> None:
    without = shoot({"backend": "nonsense"}, proxy=False)
    without["spec"]["provider"]["workers"] = []
    assert ask(without).allowed


def test_a_shoot_in_deletion_is_never_blocked() -> None:
    going = shoot({"backend": "nonsense"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(going, shoot()).allowed


def test_another_type_is_refused() -> None:
    verdict = ask(shoot(type="calico"))
    assert verdict.causes == (unsupported("spec.networking.type", "calico", ["weft"]),)


@pytest.mark.parametrize("name", ["pods", "nodes", "services"])
@pytest.mark.parametrize("value", ["10.0.0.0", "10.0.0.0/33", "ten"])
def test_ranges_must_be_cidrs(name: str, value: str) -> None:
    bad = shoot()
    bad["spec"]["networking"][name] = value
    verdict = ask(bad)
    assert fields(verdict) == [f"spec.networking.{name}"]
    assert f"invalid CIDR address: {value}" in verdict.message


@pytest.mark.parametrize(
    ("families", "reasons"),
    [
        (["IPv4", "IPv5"], {"FieldValueNotSupported"}),
        (["IPv6", "IPv6"], {"FieldValueDuplicate"}),
        (["IPv4", "IPv6", "IPv4"], {"FieldValueDuplicate", "FieldValueInvalid"}),
    ],
)
def test_at_most_two_different_families_are_accepted(
    families: list[str], reasons: set[str]
) -> None:
    verdict = ask(shoot(ipFamilies=families))
    assert {cause.reason for cause in verdict.causes} == reasons


def test_findings_about_the_config_name_the_path_in_the_shoot() -> None:
    assert fields(ask(shoot({"backend": "x"}))) == ["spec.networking.providerConfig.backend"]
    assert fields(ask(shoot({"bakend": "loom"}))) == ["spec.networking.providerConfig.bakend"]
    other = {"apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1"}
    assert fields(ask(shoot(other))) == ["spec.networking.providerConfig.apiVersion"]


def test_a_plugin_gets_the_families_of_the_shoot() -> None:
    assert ask(shoot({"backend": "shuttle"})).allowed
    both = shoot({"backend": "shuttle"}, ipFamilies=["IPv4", "IPv6"])
    assert fields(ask(both)) == ["spec.networking.providerConfig.backend"]


def test_all_findings_are_reported_together() -> None:
    verdict = ask(shoot({"backend": "x"}, proxy=False, pods="x"))
    assert fields(verdict) == [
        "spec.networking.pods",
        "spec.networking.providerConfig.backend",
        PROXY,
    ]


def test_existing_errors_are_warnings_and_do_not_block() -> None:
    old = shoot({"backend": "retired"})
    new = shoot({"backend": "retired"}, nodes="10.1.0.0/16")
    verdict = ask(new, old)
    assert verdict.allowed
    assert len(verdict.warnings) == 1
    assert "providerConfig.backend" in verdict.warnings[0]
    assert not ask(shoot({"backend": "wrong"}), old).allowed


def test_an_update_that_keeps_the_spec_is_admitted() -> None:
    old = shoot({"backend": "retired"})
    labelled = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert ask(labelled, old) == Verdict(because="the spec is unchanged")


def test_the_admission_component_of_a_plugin_sets_defaults_and_refuses_invalid_shoots() -> None:
    both = admission_webhooks(Weft(), [KUBE_PROXY_OFF])
    assert [webhook.registration.name for webhook in both] == [
        "mutator.admission-weft.extensions.gardener.cloud",
        "validator.admission-weft.extensions.gardener.cloud",
    ]
    assert enabled(both, ()) == both
    [alone] = admission_webhooks(Weft())
    assert alone.short_name == "validator"


@pytest.mark.parametrize("field", ["pods", "nodes", "services"])
@pytest.mark.parametrize(
    "text", ["fd00::%x\nCOMMIT\n/64", "fd00::%$(reboot)/64", "10.0.0.0/255.0.0.0"]
)
def test_a_range_with_a_zone_id_or_a_netmask_is_refused(field: str, text: str) -> None:
    verdict = ask(shoot(None, proxy=None, **{field: text}))

    assert not verdict.allowed
    assert fields(verdict) == [f"spec.networking.{field}"]
