"""A lost encryption key is recovered from the configuration that an API server uses."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, name_of
from pergola.garden.components.api_server.encryption import configuration, encryption, key_name
from pergola.garden.components.api_server.recovery import CONFIGURATION, recovery
from pergola.garden.components.kube_apiserver.component import api_server
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.secrets_manager import Generated, ManagedSecret
from pergola.secrets_manager.configs import SecretData
from tests.support.garden import landscape

KEY = key_name(api_server(landscape()))


def data(name: str, *, provider: str = "", secret: bytes = b"0" * 32) -> SecretData:
    return {
        "provider": provider.encode(),
        "key": name.encode(),
        "secret": secret,
        "encoding": b"none",
    }


def with_keys(current: SecretData, old: SecretData | None = None) -> Landscape:
    of = landscape()
    former = None if old is None else ManagedSecret({}, old)
    generated = dict(of.credentials.generated) | {
        KEY: Generated(ManagedSecret({}, current), former)
    }
    return replace(of, credentials=Credentials(generated))


def copy(of: Landscape) -> JsonObject:
    [secret] = encryption(of, api_server(of)).objects
    return secret


@given(
    name=st.from_regex(r"key[0-9]{1,10}", fullmatch=True),
    provider=st.sampled_from(["", "aesgcm", "secretbox"]),
    secret=st.binary(min_size=16, max_size=32),
)
def test_a_recovered_key_renders_to_the_configuration_it_comes_from(
    name: str, provider: str, secret: bytes
) -> None:
    of = with_keys(data(name, provider=provider, secret=secret))
    recovered = recovery("")([copy(of)], [])

    assert recovered == data(name, provider=provider, secret=secret)
    assert configuration(with_keys(recovered), api_server(of)) == configuration(of, api_server(of))


def test_the_key_that_no_secret_has_is_recovered_during_a_rotation() -> None:
    both = copy(with_keys(data("key2"), data("key1")))

    assert recovery(name_of(both))([both], [data("key1")]) == data("key2")
    assert recovery(name_of(both))([both], [data("key2")]) == data("key1")


def test_the_mounted_configuration_decides() -> None:
    earlier, mounted = copy(with_keys(data("key1"))), copy(with_keys(data("key2")))

    assert recovery(name_of(mounted))([earlier, mounted], []) == data("key2")


@pytest.mark.parametrize("mounted", ["", "gone"])
def test_an_ambiguous_key_is_not_recovered(mounted: str) -> None:
    copies = [copy(with_keys(data("key1"))), copy(with_keys(data("key2")))]

    assert recovery(mounted)(copies, []) is None
    assert recovery(mounted)([], []) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"resources: [{providers: [{aescbc: 1}]}]",
        b"resources: [{providers: [{aescbc: {keys: [{name: a, secret: '%'}]}}]}]",
        "resources: [{providers: [{aescbc: {keys: [{name: a, secret: ä}]}}]}]".encode(),
    ],
)
def test_nothing_is_recovered_from_an_unusable_configuration(content: bytes) -> None:
    broken = {
        "metadata": {"namespace": "garden", "name": "a"},
        "data": {CONFIGURATION: base64.b64encode(content).decode()},
    }

    assert recovery("a")([broken], []) is None
