"""Several actuators in one process: names, paths, feature gates, and cloud profiles."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.cli import app
from pergola.cli.extension.options import ExtensionCommandError, Process
from pergola.extensions.actuator import Actuator, Context
from pergola.extensions.garden import Garden, cloud_profile_of
from pergola.extensions.garden_process import admission
from pergola.extensions.options import options_from
from pergola.extensions.process import assemble, chosen, configure, controller_names, webhooks_of
from pergola.extensions.seed import Seed
from pergola.extensions.webhooks.declare import enabled, side_by_side
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.shoots import shoot_rule
from pergola.kube.client import Client
from pergola.providers.networking.calico import Calico, FeatureGates
from pergola.providers.networking.cilium import Cilium
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.options import StartError
from tests.support.cluster_config import cluster_config


class Idle(Actuator):
    async def reconcile(self, context: Context, obj: JsonObject) -> None: ...

    async def delete(self, context: Context, obj: JsonObject) -> None: ...

    async def migrate(self, context: Context, obj: JsonObject) -> None: ...


class Weft(Idle):
    kind, type, name = "Network", "weft", "networking-weft"
    feature_gates = {"Loose": False, "Tight": True}  # noqa: RUF012 - never changed

    def configure(self, gates: Mapping[str, bool]) -> None:
        self.gates = dict(gates)


class Warp(Idle):
    kind, type, name = "Network", "warp", "networking-warp"


class Dye(Idle):
    kind, type, name = "DNSRecord", "dye", "dns-dye"


def webhook(path: str, component: str) -> Webhook:
    def handle(_: Request) -> Verdict:
        return allowed()

    registration = Registration(
        name=f"{path.rpartition('/')[2]}.{component}.extensions.gardener.cloud",
        path=path,
        kind="validating",
        rules=(shoot_rule("CREATE"),),
    )
    return Webhook(registration=registration, handler=handle)


def paths(groups: list[list[Webhook]]) -> list[list[str]]:
    return [[w.registration.path for w in group] for group in groups]


def test_a_controller_is_named_like_its_kind() -> None:
    assert controller_names([Weft(), Dye()]) == ["network", "dnsrecord"]


def test_controllers_of_one_kind_have_their_types_in_their_names() -> None:
    assert controller_names([Weft(), Dye(), Warp()]) == [
        "network-weft",
        "dnsrecord",
        "network-warp",
    ]


def test_a_path_of_several_webhooks_is_followed_by_the_owner() -> None:
    groups = [
        ("weft", [webhook("/validate", "weft"), webhook("/network", "weft")]),
        ("warp", [webhook("/validate", "warp")]),
    ]
    assert paths(side_by_side(groups)) == [["/validate/weft", "/network"], ["/validate/warp"]]


def test_a_single_webhook_keeps_the_path_of_the_contract() -> None:
    assert paths(side_by_side([("weft", [webhook("/validate", "weft")])])) == [["/validate"]]


def test_a_full_name_disables_one_of_several_webhooks_with_the_same_first_part() -> None:
    both = [webhook("/a/validate", "weft"), webhook("/b/validate", "warp")]
    left = enabled(both, {"validate.weft.extensions.gardener.cloud"})
    assert left == both[1:]
    assert enabled(both, {"validate"}) == []


def test_feature_gates_are_passed_to_their_actuator() -> None:
    weft = Weft()
    configure([weft, Warp()], {"Loose": True})
    assert weft.gates == {"Loose": True, "Tight": True}


def test_the_error_about_an_unknown_feature_gate_lists_the_known_ones() -> None:
    with pytest.raises(StartError, match="names Silk; there are Loose, Tight"):
        configure([Weft(), Warp()], {"Silk": True})
    with pytest.raises(StartError, match="names Silk; there are none"):
        configure([Warp()], {"Silk": True})


def test_calicos_feature_gates_have_the_names_of_the_original() -> None:
    calico = Calico()
    configure([calico], {"SeamlessOverlaySwitch": True})
    assert calico._gates == FeatureGates(seamless_overlay_switch=True)
    configure([calico], {"NonPrivilegedCalicoNode": True})
    assert calico._gates.non_privileged_calico_node


def test_the_command_line_overrides_single_feature_gates(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("featureGates: {Loose: true, Tight: true}\n")
    options = options_from(file, {"featureGates": {"Tight": False}})
    assert options.feature_gates == {"Loose": True, "Tight": False}


@pytest.mark.parametrize(
    ("spec", "kind", "key"),
    [
        ({"cloudProfileName": "aws"}, "CloudProfile", Key("", "aws")),
        ({"cloudProfile": {"name": "aws"}}, "CloudProfile", Key("", "aws")),
        (
            {"cloudProfile": {"kind": "CloudProfile", "name": "b"}, "cloudProfileName": "a"},
            "CloudProfile",
            Key("", "b"),
        ),
        (
            {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}},
            "NamespacedCloudProfile",
            Key("garden-dev", "own"),
        ),
        ({}, "CloudProfile", Key("", "")),
    ],
)
def test_a_shoot_names_its_cloud_profile(spec: JsonObject, kind: str, key: Key) -> None:
    shoot = {"metadata": {"namespace": "garden-dev"}, "spec": spec}
    assert cloud_profile_of(shoot) == (kind, key)


# The webhooks of those that run


class Twill(Weft):
    def webhooks(self, seed: Seed) -> list[Webhook]:
        return [webhook("/weft", self.type)]


class Stain(Dye):
    def webhooks(self, seed: Seed) -> list[Webhook]:
        return [webhook("/dye", self.type)]


def served(**given: JsonValue) -> list[str] | None:
    """Return the paths that a process serves."""
    actuators, metrics, client = [Twill(), Stain()], Metrics(), Client.connect(cluster_config())
    options = options_from(None, {"webhookConfigNamespace": "extension", **given})
    on = chosen(assemble(client, actuators, options, metrics), options)
    found = webhooks_of(client, actuators, on, options, metrics)
    return None if found is None else [entry["name"] for entry in _entries(found)]


def _entries(found: ExtensionWebhooks) -> list[JsonObject]:
    return [entry for each in found.configurations(b"") for entry in each["webhooks"]]


async def test_webhooks_are_served_where_their_controller_runs() -> None:
    weft, dye = "weft.weft.extensions.gardener.cloud", "dye.dye.extensions.gardener.cloud"

    assert served() == [weft, dye]
    assert served(disableControllers=["dnsrecord"]) == [weft]
    assert served(controllers=["dnsrecord"], disableWebhooks=["weft"]) == [dye]
    assert served(disableControllers=["dnsrecord", "network"]) is None


def test_a_class_tells_whether_it_has_webhooks() -> None:
    assert Twill.has_webhooks()
    assert not Weft.has_webhooks()


# The admission component


class Cloth(Weft):
    def admission_webhooks(self, garden: Garden) -> list[Webhook]:
        garden.cloud_profiles()
        return [webhook("/webhooks/validate", self.type)]


def garden() -> Garden:
    """Return a garden that gets no requests."""
    return Garden(Client.connect(cluster_config()))


def at_garden(*actuators: Actuator, at: Garden, **given: JsonValue) -> ExtensionWebhooks:
    return admission(at, actuators, options_from(None, given), Metrics())


async def test_an_admission_component_is_named_after_the_first_actuator() -> None:
    found = at_garden(Cloth(), Warp(), at=garden(), webhookConfigNamespace="garden")
    assert found.secret == Key("garden", "gardener-extension-admission-weft-webhooks")


async def test_cloud_profiles_are_watched_once_for_all_webhooks() -> None:
    at = garden()
    assert at.unit().caches == ()
    at_garden(Cloth(), at=at, webhookConfigNamespace="garden")
    at_garden(Cloth(), at=at, webhookConfigNamespace="garden")
    kinds = [cache.gvk.kind for cache in at.unit().caches]
    assert kinds == ["CloudProfile", "NamespacedCloudProfile"]


async def test_an_actuator_without_webhooks_at_the_garden_is_refused() -> None:
    with pytest.raises(StartError, match="networking-warp has no webhooks for objects of the"):
        at_garden(Warp(), at=garden(), webhookConfigNamespace="garden")


async def test_an_admission_component_needs_a_namespace() -> None:
    with pytest.raises(StartError, match="certificates: --webhook-config-namespace"):
        at_garden(Cloth(), at=garden())


async def test_calico_refuses_shoots_and_cilium_fits_them_too() -> None:
    at = garden()
    names = [w.short_name for w in Calico().admission_webhooks(at)]
    assert names == ["validator"]
    names = [w.short_name for w in Cilium().admission_webhooks(at)]
    assert names == ["mutator", "validator"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run",), "name an extension: pergola extension run calico"),
        (("admission",), "name an extension: pergola extension admission calico"),
        (("run", "x", "--feature-gates", "Loose"), '--feature-gates is "Loose"; write Name=true'),
        (("admission", "x", "--feature-gates", "a=true,b=on"), '--feature-gates is "b=on"'),
    ],
)
def test_an_error_in_the_command_line_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Process, "configure_logging", lambda _: None)
    with pytest.raises(ExtensionCommandError, match=sentence):
        app(["extension", *arguments])
