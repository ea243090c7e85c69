"""The webhook configurations that belong to the namespace of an Extension."""

import pytest

from pergola.api.objects import JsonObject
from pergola.operator.extension.webhook_configurations import belongs_to

SPACE = "runtime-extension-dns"


def configuration(*clients: JsonObject, owner: str = "") -> JsonObject:
    owners = [{"apiVersion": "v1", "kind": "Namespace", "name": owner, "uid": "1"}]
    metadata = {"name": "any", "ownerReferences": owners if owner else []}
    return {"metadata": metadata, "webhooks": [{"clientConfig": each} for each in clients]}


def service(namespace: str) -> JsonObject:
    return {"service": {"name": "any", "namespace": namespace}}


def url(host: str) -> JsonObject:
    return {"url": f"https://{host}:443/webhooks/any"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(configuration(service(SPACE)), True, id="a service"),
        pytest.param(configuration(service(SPACE), service(SPACE)), True, id="two webhooks"),
        pytest.param(configuration(url(f"any.{SPACE}")), True, id="a URL"),
        pytest.param(configuration(url(f"any.{SPACE}.svc")), True, id="a URL with svc"),
        pytest.param(
            configuration(url(f"any.{SPACE}.svc.cluster.local")), True, id="a URL with a domain"
        ),
        pytest.param(configuration(url("example.org"), owner=SPACE), True, id="an owner"),
        pytest.param(configuration(service("garden")), False, id="another service"),
        pytest.param(
            configuration(service(SPACE), service("garden")), False, id="a webhook of another"
        ),
        pytest.param(configuration(url(f"any.{SPACE}.example.org")), False, id="an outer URL"),
        pytest.param(configuration(url("10.0.0.1")), False, id="an address"),
        pytest.param(configuration(owner="garden"), False, id="another owner"),
        pytest.param(configuration(), False, id="no webhook"),
        pytest.param({"metadata": {"name": "any"}}, False, id="nothing"),
    ],
)
def test_a_configuration_belongs_to_the_namespace_of_its_servers_or_owner(
    obj: JsonObject, expected: bool
) -> None:
    assert belongs_to(obj, SPACE) is expected
