"""Credentials in pull secrets."""

import base64

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.charts import ChartReference, Credentials, PullSecretInvalid, credentials_in

REFERENCE = ChartReference.parse("registry.example:5000/charts/dns:1")
AUTH = base64.b64encode(b"ann:pass:word").decode()


def secret(config: object) -> JsonObject:
    return encoded(base64.b64encode(orjson.dumps(config)).decode())


def encoded(text: str) -> JsonObject:
    metadata: JsonObject = {"name": "pull", "namespace": "garden"}
    return {"metadata": metadata, "data": {".dockerconfigjson": text}}


@pytest.mark.parametrize(
    "server",
    ["registry.example:5000", "https://registry.example:5000/v2/", "registry.example:5000/"],
)
def test_the_entry_of_the_registry_is_used_in_every_notation(server: str) -> None:
    found = credentials_in(secret({"auths": {"other": {}, server: {"auth": AUTH}}}), REFERENCE)

    assert found == Credentials("ann", "pass:word")
    assert "pass" not in repr(found)


@pytest.mark.parametrize(
    "server",
    [
        "https://index.docker.io/v1/",  # as kubectl create secret docker-registry writes it
        "docker.io",
        "https://registry-1.docker.io/v2/",
        "HTTPS://Index.Docker.IO/v1/",
    ],
)
@pytest.mark.parametrize("chart", ["docker.io/acme/chart:1.0.0", "index.docker.io/acme/chart:1"])
def test_every_name_of_docker_hub_is_the_same_registry(server: str, chart: str) -> None:
    found = credentials_in(secret({"auths": {server: {"auth": AUTH}}}), ChartReference.parse(chart))
    assert found == Credentials("ann", "pass:word")


def test_an_entry_for_the_repository_takes_precedence() -> None:
    entries = {
        "registry.example:5000": {"auth": AUTH},
        "registry.example:5000/charts/dns": {"username": "bob", "password": "other"},
    }

    assert credentials_in(secret({"auths": entries}), REFERENCE) == Credentials("bob", "other")


def test_a_secret_without_an_entry_for_the_registry_has_no_credentials() -> None:
    assert credentials_in(secret({"auths": {"registry.example": {}}}), REFERENCE) is None


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"metadata": {"name": "pull", "namespace": "garden"}}, 'has no key ".dockerconfigjson"'),
        (encoded("YWJj"), "is not valid JSON"),
        (secret([]), 'has no map "auths"'),
        (secret({"auths": {"registry.example:5000": {"auth": "a"}}}), 'an "auth" that is not'),
    ],
)
def test_the_error_about_a_malformed_secret_does_not_quote_its_content(
    found: JsonObject, problem: str
) -> None:
    with pytest.raises(PullSecretInvalid, match=problem) as caught:
        credentials_in(found, REFERENCE)
    assert str(caught.value).startswith("pull secret garden/pull ")
