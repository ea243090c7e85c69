"""The permissions of a node's agent: spec 12 §16."""

import base64
from typing import Any

import orjson
import pytest

from pergola.api.objects import JsonObject, Key
from pergola.kube.yaml import dump
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    GROUP,
    SECRET_NAME_LABEL,
    USER_PREFIX,
    Agent,
    Attributes,
    Selection,
    decide,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import named_secrets
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import NodeAgentAuthorizer

ME = f"{USER_PREFIX}machine-1"


class Known:
    """The clusters' facts about machine-1, which is node-1, and about node-2."""

    def __init__(self, node: str = "node-1", labels: dict[str, str] | None = None) -> None:
        self.the_agent = Agent("machine-1", node, labels or {})
        self.error: Exception | None = None

    async def agent(self, name: str) -> Agent:
        assert name == "machine-1"
        if self.error:
            raise self.error
        return self.the_agent

    async def requester(self, signing_request: str) -> str | None:
        return {"mine": ME, "other": f"{USER_PREFIX}machine-2"}.get(signing_request)

    async def node_of_pod(self, pod: Key) -> str | None:
        return {"mine": "node-1", "other": "node-2"}.get(pod.name)

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        return frozenset({"osc-1"})


async def answer(
    resource: str,
    verb: str,
    name: str = "",
    namespace: str = "",
    *,
    group: str = "",
    known: Known | None = None,
    by_selectors: bool = False,
    **more: Any,
) -> str:
    attributes: dict[str, Any] = {
        "user": ME,
        "groups": (GROUP, "system:authenticated"),
        "verb": verb,
        "group": group,
        "resource": resource,
        "namespace": namespace,
        "name": name,
    }
    decision = await decide(
        Attributes(**attributes | more), known or Known(), by_selectors=by_selectors
    )
    assert (decision.answer == "deny") == bool(decision.reason)
    return decision.answer


@pytest.mark.parametrize(
    ("user", "groups", "expected"),
    [
        ("alice", (GROUP,), "no opinion"),
        (ME, ("system:authenticated",), "no opinion"),
        (USER_PREFIX, (GROUP,), "deny"),
        (ME, (GROUP,), "allow"),
    ],
)
async def test_only_requests_of_node_agents_are_authorized(
    user: str, groups: tuple[str, ...], expected: str
) -> None:
    assert await answer("events", "create", user=user, groups=groups) == expected


CSR: dict[str, Any] = {"group": "certificates.k8s.io"}
LEASE: dict[str, Any] = {"group": "coordination.k8s.io"}


@pytest.mark.parametrize(
    ("request_", "more", "expected"),
    [
        (("certificatesigningrequests", "create"), CSR, "allow"),
        (("certificatesigningrequests", "get", "mine"), CSR, "allow"),
        (("certificatesigningrequests", "get", "other"), CSR, "deny"),
        (("certificatesigningrequests", "get", "gone"), CSR, "deny"),
        (("certificatesigningrequests", "list"), CSR, "deny"),
        (("events", "create", "", "default"), {}, "allow"),
        (("events", "patch", "x", "default"), {"group": "events.k8s.io"}, "allow"),
        (("events", "delete", "x", "default"), {}, "deny"),
        (("leases", "create", "", "kube-system"), LEASE, "allow"),
        (("leases", "create", "", "default"), LEASE, "deny"),
        (("leases", "get", "gardener-node-agent-node-1", "kube-system"), LEASE, "allow"),
        (("leases", "update", "osc-1", "kube-system"), LEASE, "allow"),
        (("leases", "get", "gardener-node-agent-node-2", "kube-system"), LEASE, "deny"),
        (("leases", "list", "", "kube-system"), LEASE, "deny"),
        (("leases", "delete", "gardener-node-agent-node-1", "kube-system"), LEASE, "deny"),
        (("nodes", "list"), {}, "allow"),
        (("nodes", "watch"), {}, "allow"),
        (("nodes", "get", "node-1"), {}, "allow"),
        (("nodes", "patch", "node-1"), {"subresource": "status"}, "allow"),
        (("nodes", "get", "node-2"), {}, "deny"),
        (("nodes", "update", "node-2"), {"subresource": "status"}, "deny"),
        (("nodes", "delete", "node-1"), {}, "deny"),
        (("nodes", "get", "node-1"), {"subresource": "proxy"}, "deny"),
        (("pods", "get", "mine", "x"), {}, "allow"),
        (("pods", "delete", "mine", "x"), {}, "allow"),
        (("pods", "delete", "other", "x"), {}, "deny"),
        (("pods", "get", "gone", "x"), {}, "deny"),
        (("pods", "list"), {}, "allow"),
        (("pods", "get", "mine", "x"), {"subresource": "log"}, "deny"),
        (("secrets", "get", "gardener-valitail", "kube-system"), {}, "allow"),
        (("secrets", "get", "osc-1", "kube-system"), {}, "allow"),
        (("secrets", "watch", "osc-1", "kube-system"), {}, "allow"),
        (("secrets", "get", "osc-2", "kube-system"), {}, "deny"),
        (("secrets", "get", "osc-1", "default"), {}, "deny"),
        (("secrets", "list", "", "kube-system"), {}, "deny"),
        (("secrets", "update", "osc-1", "kube-system"), {}, "deny"),
        (("configmaps", "get", "x", "kube-system"), {}, "deny"),
        (("nodes", "get", "node-1"), {"group": "metrics.k8s.io"}, "deny"),
        (("", "get"), {"is_resource": False}, "deny"),
    ],
)
async def test_each_row_of_the_permission_table(
    request_: tuple[str, ...], more: Any, expected: str
) -> None:
    known = Known(labels={SECRET_NAME_LABEL: "osc-1"})
    assert await answer(*request_, known=known, **more) == expected


@pytest.mark.parametrize(
    ("verb", "name", "fields", "expected"),
    [
        ("list", "", (Selection("spec.nodeName", "In", ("node-1",)),), "allow"),
        ("watch", "", (Selection("spec.nodeName", "In", ("node-2",)),), "deny"),
        ("list", "", (Selection("spec.nodeName", "NotIn", ("node-1",)),), "deny"),
        ("list", "", (Selection("spec.nodeName", "In", ("node-1", "node-2")),), "deny"),
        ("list", "", (), "deny"),
        ("list", "mine", (), "allow"),
        ("watch", "other", (), "deny"),
    ],
)
async def test_requests_for_pods_may_need_a_field_selector(
    verb: str, name: str, fields: tuple[Selection, ...], expected: str
) -> None:
    assert await answer("pods", verb, name, "x", fields=fields, by_selectors=True) == expected


async def test_an_agent_without_a_node_may_bootstrap_but_not_access_nodes() -> None:
    known = Known(node="")
    assert await answer("certificatesigningrequests", "create", known=known, **CSR) == "allow"
    assert await answer("secrets", "get", "osc-1", "kube-system", known=known) == "allow"
    for name in ("", "node-1"):
        assert await answer("nodes", "get", name, known=known) == "deny"
    assert await answer("pods", "get", "mine", "x", known=known) == "deny"


# The protocol


def review(version: str = "v1", **spec: Any) -> bytes:
    return orjson.dumps(
        {
            "apiVersion": f"authorization.k8s.io/{version}",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": ME,
                ("groups" if version == "v1" else "group"): [GROUP],
                "resourceAttributes": {"verb": "get", "resource": "nodes", "name": "node-1"},
            }
            | spec,
        }
    )


async def status(
    body: bytes, content_type: str = "application/json", known: Known | None = None
) -> JsonObject:
    answer: JsonObject = orjson.loads(
        await NodeAgentAuthorizer(known or Known())(content_type, body)
    )
    assert answer["kind"] == "SubjectAccessReview"
    return {"apiVersion": answer["apiVersion"], **answer["status"]}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_response_has_the_version_of_the_request(version: str) -> None:
    assert await status(review(version)) == {
        "apiVersion": f"authorization.k8s.io/{version}",
        "allowed": True,
    }


async def test_a_refusal_has_a_reason_and_no_opinion_has_none() -> None:
    other = {"verb": "get", "resource": "nodes", "name": "node-2"}
    refused = await status(review(resourceAttributes=other))
    assert (refused["allowed"], refused["denied"]) == (False, True)
    assert "node-2" in refused["reason"]
    unknown = await status(review(user="alice"))
    assert unknown == {"apiVersion": "authorization.k8s.io/v1", "allowed": False}
    paths = await status(review(resourceAttributes=None, nonResourceAttributes={"path": "/"}))
    assert paths["denied"]


@pytest.mark.parametrize(
    ("body", "content_type", "error"),
    [
        (b"", "application/json", "422 request body is empty"),
        (review(), "text/plain", "400 contentType=text/plain, expected application/json"),
        (b"{", "application/json", "400 "),
        (b"[]", "application/json", "400 expected a SubjectAccessReview"),
        (b'{"kind":"SubjectAccessReview"}', "application/json", "400 expected"),
        (b'{"apiVersion":"authorization.k8s.io/v1","kind":"X"}', "application/json", "400 "),
    ],
)
async def test_a_body_that_is_not_a_review_is_an_error(
    body: bytes, content_type: str, error: str
) -> None:
    found = await status(body, content_type)
    assert found["allowed"] is False
    assert found["evaluationError"].startswith(error)


async def test_a_lookup_that_fails_allows_nothing() -> None:
    known = Known()
    known.error = RuntimeError("the API server is not there")
    found = await status(review(), known=known)
    assert found["allowed"] is False
    assert found["evaluationError"] == "500 the API server is not there"


async def test_a_lookup_that_times_out_has_a_separate_message() -> None:
    known = Known()
    known.error = TimeoutError("the look-up did not answer")
    found = await status(review(), known=known)
    assert found["allowed"] is False
    assert found["evaluationError"] == "500 the look-up did not answer"


# References in a configuration


def configuration(*files: JsonObject, **status: Any) -> JsonObject:
    text = dump({"spec": {"files": list(files)}, "status": status})
    return {"data": {"osc.yaml": base64.b64encode(text.encode()).decode()}}


def file(secret: str, **more: str) -> JsonObject:
    return {"path": "/x", "content": {"secretRef": {"name": secret, "dataKey": "k"}}, **more}


def test_secrets_of_files_are_readable_unless_they_are_for_another_host() -> None:
    secret = configuration(
        file("a"),
        file("b", hostName="host-1"),
        file("c", hostName="host-2"),
        {"path": "/y", "content": {"inline": {"data": "x"}}},
        extensionFiles=[file("d")],
    )
    assert named_secrets(secret, "host-1") == {"a", "b", "d"}
    assert named_secrets(secret, None) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    "data", [{}, {"osc.yaml": "!"}, {"osc.yaml": "e30="}, {"osc.yaml": "Wzdd"}]
)
def test_a_malformed_configuration_references_no_secrets(data: JsonObject) -> None:
    assert named_secrets({"data": data}, None) == set()


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"user": 1}, "400 spec.user: expected a string, found a number"),
        ({"groups": "x"}, "400 spec.groups: expected a list of strings, found a string"),
        ({"groups": [1]}, "400 spec.groups: expected a list of strings, found a list"),
        ({"resourceAttributes": []}, "400 spec.resourceAttributes: expected a map, found a list"),
        (
            {"resourceAttributes": {"verb": True}},
            "400 spec.resourceAttributes.verb: expected a string, found a boolean",
        ),
        (
            {"resourceAttributes": {"fieldSelector": {"requirements": [1]}}},
            "400 spec.resourceAttributes.fieldSelector.requirements[0]: expected a map, found a",
        ),
    ],
)
async def test_a_malformed_review_is_an_error(spec: Any, error: str) -> None:
    found = await status(review(**spec))
    assert found["allowed"] is False
    assert "denied" not in found
    assert found["evaluationError"].startswith(error)


async def test_a_spec_of_the_wrong_type_is_an_error() -> None:
    body = orjson.dumps(
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": []}
    )
    found = await status(body)
    assert found["evaluationError"] == "400 spec: expected a map, found a list"
