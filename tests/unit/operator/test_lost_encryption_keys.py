"""A missing encryption key is lost if anything was made with it, and new otherwise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.components import gardener_apiserver as gardener
from pergola.garden.components.api_server.encryption import encryption_key, irreplaceable
from pergola.garden.components.api_server.part import ApiServer
from pergola.garden.components.kube_apiserver import component as kubernetes
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.lost_secrets import REPLACE_LOST_SECRET, REPLACEABLE
from pergola.garden.rules.validation import check_garden, check_garden_update
from pergola.operator.webhooks.garden.review import is_same_content
from pergola.secrets_manager import SecretLost
from pergola.secrets_manager.loss import Evidence, is_replacement
from tests.support.garden import landscape
from tests.support.gardens import FACTS, MINIMAL, with_values

AT_REST: Final[JsonObject] = {"encryptionAtRest": {"provider": {"type": "aescbc"}}}
SERVERS: Final = (kubernetes.api_server, gardener.api_server)
IN_USE: Final = ("Prepared", "Completing", "Completed")


def missing(server: ApiServer) -> Key:
    return Key("garden", f"{server.name}-etcd-encryption-key-12345678")


def with_status(credentials: JsonObject, name: str = "", **status: object) -> Landscape:
    """Return the landscape of a Garden that gives up a Secret of this name."""
    annotations = {REPLACE_LOST_SECRET: name or None}
    return landscape(
        {"metadata": {"annotations": annotations}, "status": {"credentials": credentials, **status}}
    )


def rotated(phase: str) -> JsonObject:
    return {"rotation": {"etcdEncryptionKey": {"phase": phase}}}


def replaces(
    of: Landscape,
    server: ApiServer,
    *copies: Key,
    has_older: bool = False,
    claims: Sequence[Key] = (),
) -> bool:
    found: list[JsonObject] = [
        {"metadata": {"namespace": each.namespace, "name": each.name}} for each in copies
    ]
    evidence = Evidence(older=[{}] if has_older else [], copies=found, claims=claims)
    return is_replacement(missing(server), irreplaceable(of, server), evidence)


@pytest.mark.parametrize("server_of", SERVERS)
def test_a_missing_key_is_lost_if_a_copy_or_the_status_proves_it_unless_it_is_given_up(
    server_of: Callable[[Landscape], ApiServer],
) -> None:
    server = server_of(landscape())
    name, copy = missing(server).name, Key("garden", "the-copy")
    for status, copies, given_up in product(({}, AT_REST), ((), (copy,)), ("", "another", name)):
        of = with_status(status, given_up)
        if not status and not copies:
            assert not replaces(of, server)
        elif given_up == name:
            assert replaces(of, server, *copies)
        else:
            with pytest.raises(SecretLost) as caught:
                replaces(of, server, *copies)
            text = str(caught.value)
            assert f"Secret garden/{name} is lost" in text
            assert f"{REPLACE_LOST_SECRET}={name}" in text
            assert "`pergola garden import`" in text
            assert ("status.credentials.encryptionAtRest" in text) is bool(status)
            assert ("Secret garden/the-copy contains a copy" in text) is bool(copies)
            assert ("recover it from the copy" in text) is bool(copies)


@pytest.mark.parametrize("server_of", SERVERS)
@pytest.mark.parametrize("phase", IN_USE)
def test_the_record_of_a_rotation_proves_that_its_key_existed(
    server_of: Callable[[Landscape], ApiServer], phase: str
) -> None:
    with pytest.raises(SecretLost, match=r"rotation\.etcdEncryptionKey of the Garden records"):
        replaces(with_status(rotated(phase)), server_of(landscape()), has_older=True)


@pytest.mark.parametrize("server_of", SERVERS)
def test_the_resources_that_an_older_operator_recorded_prove_that_a_key_existed(
    server_of: Callable[[Landscape], ApiServer],
) -> None:
    of = with_status({}, encryptedResources=["configmaps"])
    with pytest.raises(SecretLost, match=r"status\.encryptedResources of the Garden records"):
        replaces(of, server_of(landscape()))


@pytest.mark.parametrize("server_of", SERVERS)
def test_a_rotation_generates_a_key_until_all_replicas_know_it(
    server_of: Callable[[Landscape], ApiServer],
) -> None:
    server, copy = server_of(landscape()), Key("garden", "the-copy")
    of = with_status({**AT_REST, **rotated("Preparing")})
    assert not replaces(of, server, copy, has_older=True)
    known = replace(of, is_new_key_known=True)
    with pytest.raises(SecretLost, match=f"of Deployment garden/{server.deployment} records"):
        replaces(known, server, copy, has_older=True)


@pytest.mark.parametrize("server_of", SERVERS)
def test_a_rotation_does_not_hide_that_the_key_it_replaces_is_lost(
    server_of: Callable[[Landscape], ApiServer],
) -> None:
    server = server_of(landscape())
    of = with_status({**AT_REST, **rotated("Preparing")})
    with pytest.raises(SecretLost, match="the Secret that a rotation replaces with garden/"):
        replaces(of, server)
    assert not replaces(with_status(rotated("Preparing")), server)


def test_the_keys_of_both_api_servers_are_irreplaceable_and_can_be_given_up() -> None:
    of = landscape()
    credentials = [encryption_key(of, server_of(of)) for server_of in SERVERS]
    assert all(each.options.irreplaceable for each in credentials)
    assert {each.config.name for each in credentials} < set(REPLACEABLE)


@pytest.mark.parametrize("server_of", SERVERS)
def test_a_volume_of_etcd_proves_that_a_key_existed_and_can_be_deleted_instead(
    server_of: Callable[[Landscape], ApiServer],
) -> None:
    claim = Key("garden", "main-virtual-garden-etcd-virtual-garden-etcd-main-0")
    with pytest.raises(SecretLost) as caught:
        replaces(with_status({}), server_of(landscape()), claims=[claim])
    assert f"PersistentVolumeClaim {claim} has the data of an etcd" in str(caught.value)
    assert f"or delete the claim {claim} to begin with an empty etcd" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("kube-apiserver-etcd-encryption-key-0123abcd", True),
        ("gardener-apiserver-etcd-encryption-key-0123abcd-01234", True),
        ("kube-apiserver-etcd-encryption-key", False),
        ("ca-0123abcd", True),
        ("ca-client-0123abcd-01234", True),
        ("ca-garden-runtime-0123abcd", False),
        ("true", False),
    ],
)
def test_the_annotation_must_name_the_secret_of_an_irreplaceable_credential(
    name: str, *, is_valid: bool
) -> None:
    garden = with_values(MINIMAL, {"metadata.annotations": {REPLACE_LOST_SECRET: name}})
    found = [cause.field for cause in check_garden(garden_from(garden), FACTS)]
    path = f"metadata.annotations[{REPLACE_LOST_SECRET}]"
    assert found == ([] if is_valid else [path])

    assert is_same_content(garden, MINIMAL) is False
    before, after = garden_from(MINIMAL), garden_from(garden)
    added = [cause.field for cause in check_garden_update(after, before, FACTS)]
    assert added == found
    # One that is there does not block other changes.
    assert [*check_garden_update(after, after, FACTS)] == []
