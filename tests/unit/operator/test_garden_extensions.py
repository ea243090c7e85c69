"""The Extensions of a garden, their order, and required ones (spec 20 §11, 21 §15.3)."""

from typing import Any

from pergola.api.objects import JsonObject, Key, annotations_of, name_of, namespace_of
from pergola.operator.reconcile.extension_resources.extensions import (
    deletion_of,
    extensions,
    none_after,
    none_before,
)
from pergola.operator.reconcile.extension_resources.inputs import CHECKSUM
from pergola.operator.reconcile.extension_resources.required import none_required, required
from tests.support.garden import BACKED_UP, landscape


def served(kind: str, of_type: str, **fields: object) -> JsonObject:
    return {"kind": kind, "type": of_type, **fields}


def extension(name: str, *resources: JsonObject) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"resources": list(resources)}}


def uses(*types: str, config: JsonObject | None = None) -> JsonObject:
    items = [{"type": each, **({"providerConfig": config} if config else {})} for each in types]
    return {"spec": {"extensions": items}}


def test_an_extension_is_named_after_its_type() -> None:
    [found] = extensions(landscape(uses("shoot-oidc", config={"kind": "Config"})))
    assert (namespace_of(found.obj), name_of(found.obj)) == ("garden", "garden-shoot-oidc")
    assert found.obj["spec"] == {
        "class": "garden",
        "type": "shoot-oidc",
        "providerConfig": {"kind": "Config"},
    }


def test_extensions_enabled_for_every_garden_need_no_mention() -> None:
    known = extension(
        "a",
        served("Extension", "everywhere", autoEnable=["garden", "shoot"]),
        served("Extension", "elsewhere", autoEnable=["shoot"]),
        served("Extension", "named"),
    )
    config = {"kind": "Config"}
    found = extensions(landscape(uses("everywhere", config=config), extensions=(known,)))
    assert [each.obj["spec"]["type"] for each in found] == ["everywhere"]
    assert found[0].obj["spec"]["providerConfig"] == config
    [enabled] = extensions(landscape(extensions=(known,)))
    assert "providerConfig" not in enabled.obj["spec"]


def test_the_lifecycle_of_the_extension_decides_when_it_is_deployed() -> None:
    known = extension(
        "a",
        served("Extension", "early", lifecycle={"reconcile": "BeforeKubeAPIServer"}),
        served("Extension", "late", lifecycle={"reconcile": "AfterWorker"}),
        served("Extension", "usual"),
    )
    site = landscape(uses("early", "late", "usual"), extensions=(known,))
    found = {each.obj["spec"]["type"]: each.is_before for each in extensions(site)}
    assert found == {"early": True, "late": False, "usual": False}


def test_tasks_without_extensions_are_skipped_with_a_reason() -> None:
    early = extension(
        "a", served("Extension", "early", lifecycle={"reconcile": "BeforeKubeAPIServer"})
    )
    before = landscape(uses("early"), extensions=(early,))
    assert none_before(before) is None
    assert none_after(before) == "no extension is handled after the kube-apiserver"
    after = landscape(uses("usual"))
    assert none_before(after) == "no extension is handled before the kube-apiserver"
    assert none_after(after) is None


def test_the_lifecycle_decides_when_a_live_extension_is_deleted_even_if_it_is_stale() -> None:
    known = extension("a", served("Extension", "last", lifecycle={"delete": "AfterKubeAPIServer"}))
    assert deletion_of({"spec": {"type": "last"}}, [known]) == "AfterKubeAPIServer"
    assert deletion_of({"spec": {"type": "unknown"}}, [known]) == "BeforeKubeAPIServer"


def test_the_time_limit_is_read_from_the_resource() -> None:
    known = extension(
        "a",
        served("Extension", "slow", reconcileTimeout="10m"),
        served("Extension", "usual"),
    )
    site = landscape(uses("slow", "usual"), extensions=(known,))
    assert {each.obj["spec"]["type"]: each.timeout for each in extensions(site)} == {
        "slow": 600.0,
        "usual": None,
    }


def test_changed_resources_change_extensions() -> None:
    named = {"name": "tls", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "tls"}}
    checksums = set()
    for content in ("b25l", "dHdv"):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "tls", "namespace": "garden"},
            "data": {"key": content},
        }
        site = landscape(
            uses("a"),
            {"spec": {"resources": [named]}},
            references={("Secret", Key("garden", "tls")): secret},
        )
        checksums.add(annotations_of(extensions(site)[0].obj)[CHECKSUM])
    assert len(checksums) == 2


# Requirements of a Garden


def needs(*patches: JsonObject, **attributes: Any) -> dict[str, tuple[str, ...]]:
    return {str(need): names for need, names in required(landscape(*patches, **attributes)).items()}


def test_a_garden_without_extensions_requires_none() -> None:
    assert none_required(landscape()) == "the Garden uses no extension"


def test_every_used_type_is_required_with_its_extensions() -> None:
    known = (
        extension("enabled", served("Extension", "everywhere", autoEnable=["garden"])),
        extension("one", served("BackupBucket", "Local"), served("DNSRecord", "Route53")),
        extension("two", served("DNSRecord", "route53")),
    )
    dns = {"spec": {"dns": {"providers": [provider("p", "route53")]}}}
    assert needs(BACKED_UP, dns, uses("named"), extensions=known) == {
        "BackupBucket/local": ("one",),
        "BackupEntry/local": (),
        "DNSRecord/route53": ("one", "two"),
        "Extension/everywhere": ("enabled",),
        "Extension/named": (),
    }


def test_an_existing_bucket_without_an_extension_requires_none() -> None:
    assert needs(BACKED_UP) == {}


def test_a_bucket_that_must_be_created_requires_an_extension() -> None:
    unnamed = {"spec": {"virtualCluster": {"etcd": {"main": {"backup": {"bucketName": None}}}}}}
    assert needs(BACKED_UP, unnamed) == {"BackupBucket/local": (), "BackupEntry/local": ()}


def test_without_the_gate_no_extension_for_the_entry_is_required() -> None:
    known = extension("one", served("BackupBucket", "local"))
    gates = {"BackupEntryForGarden": False}
    found = needs(BACKED_UP, extensions=(known,), feature_gates=gates)
    assert found == {"BackupBucket/local": ("one",)}


def provider(name: str, of_type: str) -> JsonObject:
    return {"name": name, "type": of_type, "secretRef": {"name": "dns"}}
