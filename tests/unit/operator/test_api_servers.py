"""The parts that kube-apiserver and gardener-apiserver share (spec 20 §15.2, §17.3)."""

import base64
from dataclasses import replace

import pytest

from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.api.operator_v1alpha1.api_server import AdmissionPlugin
from pergola.garden.components.api_server.admission import admission
from pergola.garden.components.api_server.admission import configuration as plugin_configuration
from pergola.garden.components.api_server.audit import audit
from pergola.garden.components.api_server.encryption import configuration, encryption_key
from pergola.garden.components.api_server.part import ApiServer, feature_gates
from pergola.garden.components.api_server.serving import limits
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.garden.landscape.errors import ReferenceMissing
from pergola.kube.yaml import parse
from pergola.secrets_manager import Generated, ManagedSecret
from tests.support.garden import landscape

KEY = "gardener-apiserver-etcd-encryption-key"
POLICY: JsonObject = {"auditPolicy": {"configMapRef": {"name": "policy"}}}


def api_server(of: Landscape) -> ApiServer:
    return ApiServer(
        name="gardener-apiserver",
        deployment="gardener-apiserver",
        audit_policy="audit-policy-config",
        settings=of.virtual.gardener.api_server,
        always_encrypted=("shootstates.core.gardener.cloud",),
    )


def settings(**fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": {"gardenerAPIServer": fields}}}}


def secret(name: str, **data: str) -> tuple[tuple[str, Key], JsonObject]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return ("Secret", Key("garden", name)), {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": "garden", "name": name},
        "data": encoded,
    }


def config_map(name: str, **data: str) -> tuple[tuple[str, Key], JsonObject]:
    return ("ConfigMap", Key("garden", name)), {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "garden", "name": name},
        "data": dict(data),
    }


def file(obj: JsonObject, key: str) -> JsonObject:
    value = map_at(obj, "data")[key]
    assert isinstance(value, str)
    text = base64.b64decode(value) if obj["kind"] == "Secret" else value
    parsed = parse(text)
    assert isinstance(parsed, dict)
    return parsed


def test_nothing_is_audited_by_default() -> None:
    found = audit(landscape(), api_server(landscape()))
    (policy,) = found.objects
    assert file(policy, "audit-policy.yaml")["rules"] == [{"level": "None"}]
    assert found.args == ("--audit-policy-file=/etc/kubernetes/audit/audit-policy.yaml",)


def test_the_audit_log_is_sent_to_the_webhook_with_the_policy_of_the_garden() -> None:
    webhook = {"kubeconfigSecretName": "receiver", "batchMaxSize": 7}
    of = landscape(
        settings(auditConfig=POLICY, auditWebhook=webhook),
        references=dict(
            [config_map("policy", policy="rules: []"), secret("receiver", kubeconfig="x")]
        ),
    )
    found = audit(of, api_server(of))
    policy, _ = found.objects
    assert file(policy, "audit-policy.yaml") == {"rules": []}
    assert "--audit-webhook-config-file=/etc/kubernetes/webhook/audit/kubeconfig.yaml" in found.args
    assert "--audit-webhook-batch-max-size=7" in found.args


def test_a_missing_audit_policy_is_reported_with_its_name() -> None:
    of = landscape(settings(auditConfig=POLICY))
    with pytest.raises(ReferenceMissing, match="ConfigMap garden/policy"):
        audit(of, api_server(of))


def test_an_audit_policy_without_its_key_is_reported_with_the_key() -> None:
    of = landscape(
        settings(auditConfig=POLICY), references=dict([config_map("policy", other="rules: []")])
    )
    with pytest.raises(ReferenceMissing, match=r'garden/policy.*no key "policy"'):
        audit(of, api_server(of))


def test_a_plugin_cannot_read_a_kubeconfig_that_the_garden_does_not_provide() -> None:
    stolen = {"kubeConfigFile": "/var/run/secrets/token"}
    for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"):
        config = plugin_configuration(AdmissionPlugin(name=name, config=dict(stolen)))
        assert config == {"kubeConfigFile": ""}
    config = plugin_configuration(
        AdmissionPlugin(name="ImagePolicyWebhook", config={"imagePolicy": dict(stolen)})
    )
    assert config == {"imagePolicy": {"kubeConfigFile": ""}}


def test_a_plugin_with_a_kubeconfig_gets_a_configuration_that_names_it() -> None:
    plugin = {"name": "ValidatingAdmissionWebhook", "kubeconfigSecretName": "webhook"}
    of = landscape(
        settings(admissionPlugins=[plugin]), references=dict([secret("webhook", kubeconfig="x")])
    )
    found = admission(of, api_server(of))
    config_map, kubeconfigs = found.objects
    assert list(map_at(kubeconfigs, "data")) == ["validatingadmissionwebhook-kubeconfig.yaml"]
    assert file(config_map, "validatingadmissionwebhook.yaml")["kubeConfigFile"] == (
        "/etc/kubernetes/admission-kubeconfigs/validatingadmissionwebhook-kubeconfig.yaml"
    )
    assert file(config_map, "admission-configuration.yaml")["plugins"] == [
        {
            "name": "ValidatingAdmissionWebhook",
            "path": "/etc/kubernetes/admission/validatingadmissionwebhook.yaml",
        }
    ]


def test_a_disabled_plugin_is_not_enabled_even_if_it_is_a_default() -> None:
    of = landscape(settings(admissionPlugins=[{"name": "Bastion", "disabled": True}]))
    defaults = [AdmissionPlugin(name="Bastion"), AdmissionPlugin(name="ManagedSeed")]
    args = admission(of, api_server(of), defaults).args
    assert args[:2] == (
        "--enable-admission-plugins=ManagedSeed",
        "--disable-admission-plugins=Bastion",
    )


def test_pod_security_never_applies_to_kube_system() -> None:
    config = plugin_configuration(AdmissionPlugin(name="PodSecurity", config={"kind": "x"}))
    assert config == {"kind": "x", "exemptions": {"namespaces": ["kube-system"]}}


def test_limits_become_flags_only_if_set() -> None:
    of = landscape(
        settings(
            requests={"maxNonMutatingInflight": 1},
            logging={"verbosity": 0},
            watchCacheSizes={
                "default": 5,
                "resources": [
                    {"resource": "secrets", "size": 6},
                    {"apiGroup": "apps", "resource": "deployments", "size": 0},
                ],
            },
        )
    )
    assert list(limits(of.virtual.gardener.api_server)) == [
        "--max-requests-inflight=1",
        "--v=0",
        "--watch-cache-sizes=secrets#6,deployments.apps#0",
    ]


def test_feature_gates_are_sorted() -> None:
    assert feature_gates({"B": True, "A": False}) == ("--feature-gates=A=false,B=true",)
    assert feature_gates({}) == ()


def key(name: str, provider: str = "") -> ManagedSecret:
    data = {"key": name.encode(), "secret": b"0", "encoding": b"none"}
    return ManagedSecret({"kind": "Secret"}, {**data, "provider": provider.encode()})


def with_keys(of: Landscape, current: ManagedSecret, old: ManagedSecret | None = None) -> Landscape:
    generated = {**of.credentials.generated, KEY: Generated(current, old=old)}
    return of.with_credentials(Credentials(generated))


def in_phase(phase: str) -> JsonObject:
    rotation = {"etcdEncryptionKey": {"phase": phase}}
    return {"status": {"credentials": {"rotation": rotation}}}


def key_names(of: Landscape) -> list[list[str]]:
    """Return the names of the keys by provider."""
    (resources,) = maps_at(configuration(of, api_server(of)), "resources")
    return [
        [str(key["name"]) for key in maps_at(keys, "keys")]
        for provider in maps_at(resources, "providers")
        for keys in provider.values()
        if isinstance(keys, dict) and keys
    ]


def test_the_new_key_encrypts_only_once_all_replicas_know_it() -> None:
    of = with_keys(landscape(in_phase("Preparing")), key("new"), key("old"))
    assert key_names(of) == [["old", "new"]]
    known = replace(of, is_new_key_known=True)
    assert key_names(known) == [["new", "old"]]


def test_each_provider_has_a_block_for_its_keys() -> None:
    of = with_keys(landscape(in_phase("Prepared")), key("new"), key("old", "secretbox"))
    assert key_names(of) == [["new"], ["old"]]


def test_the_old_key_is_dropped_when_the_rotation_completes() -> None:
    of = landscape(in_phase("Completing"))
    assert encryption_key(of, api_server(of)).options.ignore_old


def test_resources_no_longer_encrypted_stay_readable_and_are_written_in_plain_text() -> None:
    status = {
        "credentials": {
            "encryptionAtRest": {"resources": ["configmaps", "shoots.core.gardener.cloud"]}
        }
    }
    of = with_keys(landscape({"status": status}), key("new"))
    encrypted, removed = maps_at(configuration(of, api_server(of)), "resources")
    assert encrypted["resources"] == ["shootstates.core.gardener.cloud"]
    assert maps_at(encrypted, "providers")[-1] == {"identity": {}}
    assert removed["resources"] == ["shoots.core.gardener.cloud"]
    assert maps_at(removed, "providers")[0] == {"identity": {}}
