"""The authorizer that restricts a node's agent to its own objects."""

import asyncio
import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.documents import client_of
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from conformance.subjects.webhooks import JSON, configuration
from pergola.api.objects import JsonObject, JsonValue
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    GROUP,
    HOST_NAME_LABEL,
    SECRET_NAME_LABEL,
    SYSTEM,
    USER_PREFIX,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import (
    POOL_LABEL,
    ClusterLookups,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import (
    PATH,
    NodeAgentAuthorizer,
)

_MACHINES: Final = "shoot--a--b"
_NAMES: Final = st.sampled_from(["m1", "n1", "n2"])
_NODE_NAMES: Final = st.sampled_from(["n1", "n2"])
_SECRET_NAMES: Final = ("osc-1", "osc-2", "extra-1")
_SECRETS: Final = st.sampled_from(_SECRET_NAMES)
_FILES: Final = st.lists(
    some(
        {"hostName": st.sampled_from(["", "h1", "h2"])},
        {
            "path": st.just("/a"),
            "content": st.one_of(
                st.fixed_dictionaries({"secretRef": st.fixed_dictionaries({"name": _SECRETS})}),
                st.just({"inline": {"data": ""}}),
            ),
        },
    ),
    max_size=2,
)


def _object(kind: str, name: str, **fields: Any) -> JsonObject:
    group = {
        "Machine": "machine.sapcloud.io/v1alpha1",
        "CertificateSigningRequest": "certificates.k8s.io/v1",
    }
    metadata: JsonObject = {"name": name, "labels": fields.pop("labels", {})}
    if "namespace" in fields:
        metadata["namespace"] = fields.pop("namespace")
    return {"apiVersion": group.get(kind, "v1"), "kind": kind, "metadata": metadata, **fields}


def _configuration_secret(parts: tuple[str, JsonObject, list[JsonObject], bool]) -> JsonObject:
    name, labels, files, is_broken = parts
    text: JsonObject = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "OperatingSystemConfig",
        "spec": {"files": files[:1]},
        "status": {"extensionFiles": files[1:]},
    }
    data = b"{" if is_broken else orjson.dumps(text)
    encoded = {"osc.yaml": base64.b64encode(data).decode()}
    return _object("Secret", name, namespace=SYSTEM, labels=labels, data=encoded)


_MACHINE: Final = st.tuples(
    some({"node": _NODE_NAMES}), st.fixed_dictionaries({SECRET_NAME_LABEL: _SECRETS})
).map(
    lambda parts: {
        "labels": parts[0],
        "spec": {"nodeTemplate": {"metadata": {"labels": parts[1]}}},
    }
)
_NODE_LABELS: Final = some(
    {SECRET_NAME_LABEL: _SECRETS, HOST_NAME_LABEL: st.sampled_from(["h1", "h2"])}
)
_SOURCE: Final = st.dictionaries(
    st.sampled_from(["m1", "m2"]), _MACHINE, min_size=1, max_size=2
).map(
    lambda found: [
        _object("Machine", name, namespace=_MACHINES, **fields) for name, fields in found.items()
    ]
)
_TARGET: Final = st.tuples(
    st.dictionaries(_NODE_NAMES, _NODE_LABELS, max_size=2).map(
        lambda found: [_object("Node", name, labels=labels) for name, labels in found.items()]
    ),
    st.lists(
        st.tuples(
            _SECRETS,
            some({POOL_LABEL: st.just("p")}),
            _FILES,
            st.sampled_from([*[False] * 9, True]),
        ),
        max_size=3,
        unique_by=lambda parts: parts[0],
    ).map(lambda found: [_configuration_secret(parts) for parts in found]),
    _NODE_NAMES.map(
        lambda node: [
            _object("Pod", "pod", namespace="n", spec={"containers": [], "nodeName": node})
        ]
    ),
    _NAMES.map(
        lambda name: [
            _object(
                "CertificateSigningRequest",
                "csr",
                spec={
                    "username": f"{USER_PREFIX}{name}",
                    "request": "",
                    "signerName": "kubernetes.io/kubelet-serving",
                },
            )
        ]
    ),
).map(lambda parts: [obj for group in parts for obj in group])
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
_RESOURCES: Final = (
    ("certificates.k8s.io", "certificatesigningrequests", ("",), ("csr",)),
    ("", "events", ("n", ""), ("",)),
    ("events.k8s.io", "events", ("n",), ("",)),
    (
        "coordination.k8s.io",
        "leases",
        (SYSTEM, SYSTEM, "n"),
        ("gardener-node-agent-n1", "gardener-node-agent-n2", "osc-1", ""),
    ),
    ("", "nodes", ("",), ("n1", "n2", "")),
    ("", "pods", ("n",), ("pod", "pod", "", "other")),
    (
        "",
        "secrets",
        (SYSTEM, SYSTEM, SYSTEM, "n", ""),
        (*_SECRET_NAMES, "gardener-valitail", "shoot-access-cluster-admin", "other", ""),
    ),
    ("", "configmaps", (SYSTEM,), ("a",)),
    ("coordination.k8s.io", "secrets", (SYSTEM,), ("osc-1",)),
)
_SELECTOR: Final = st.fixed_dictionaries(
    {
        "requirements": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(["spec.nodeName", "metadata.name"]),
                    "operator": st.sampled_from(["In", "NotIn"]),
                    "values": st.lists(_NODE_NAMES, min_size=1, max_size=2),
                }
            ),
            max_size=2,
        )
    }
)


def _attributes(
    resource: tuple[str, str, tuple[str, ...], tuple[str, ...]],
) -> SearchStrategy[JsonObject]:
    group, plural, namespaces, names = resource
    return some(
        {
            "subresource": st.sampled_from([*[""] * 9, "status", "eviction", "log"]),
            "fieldSelector": _SELECTOR,
        },
        {
            "group": st.just(group),
            "resource": st.just(plural),
            "version": st.just("v1"),
            "verb": st.sampled_from(_VERBS),
            "namespace": st.sampled_from(namespaces),
            "name": st.sampled_from(names),
        },
    )


_ATTRIBUTES: Final = st.sampled_from(_RESOURCES).flatmap(_attributes)
_SPEC: Final = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([*[[GROUP]] * 9, [GROUP, "a"], ["a"], []]),
        "user": st.sampled_from(
            [
                *(f"{USER_PREFIX}{name}" for name in ("m1", "n1", "m1", "n1", "n2", "m2") * 2),
                *(USER_PREFIX, "admin", f"{USER_PREFIX.upper()}m1"),
            ]
        ),
    }
)
_OTHER_PATH: Final = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
_REVIEWS: Final = st.builds(
    lambda spec, attributes, of_path: {
        **spec,
        **(_OTHER_PATH if of_path else {"resourceAttributes": attributes}),
    },
    _SPEC,
    _ATTRIBUTES,
    st.sampled_from([*[False] * 30, True]),
)
_SETTINGS: Final = some(
    {"machineNamespace": st.just(_MACHINES), "authorizeWithSelectors": st.booleans()}
)


class NodeAgents:
    """Which requests of a node's agent are allowed, denied, or left to other authorizers."""

    name = "node-agents"
    ask = "webhook"
    title = "Authorizer of node agents"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.webhooks.node_agent_authorizer",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return reviews of requests, with Machines, Nodes, Secrets, pods and CSRs."""
        return st.builds(_question, _SETTINGS, _SOURCE, _TARGET, _REVIEWS)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the decision, and whether it is an error."""
        return _decision(answer.output["answer"]["status"])

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the decisions; an error on one side may be a denial on the other."""
        theirs = _decision(answer.output["answer"]["status"])
        ours = _decision(asyncio.run(_status(question)))
        failed = theirs["failed"] or ours["failed"]
        names = ["allowed"] if failed else ["allowed", "denied"]
        return differences(_chosen(theirs, names), _chosen(ours, names))


def _decision(status: JsonObject) -> JsonObject:
    return {
        "allowed": status.get("allowed", False),
        "denied": status.get("denied", False),
        "failed": "evaluationError" in status,
    }


def _chosen(decision: JsonObject, names: Iterable[str]) -> JsonObject:
    return {name: decision[name] for name in names}


def _question(
    settings: JsonObject, source: list[JsonObject], target: list[JsonObject], spec: JsonObject
) -> JsonObject:
    return {
        "path": PATH,
        "configuration": configuration("nodeAgentAuthorizer", settings),
        "source": source,
        "target": target,
        "review": {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        },
    }


async def _status(question: JsonObject) -> JsonObject:
    settings = question["configuration"]["webhooks"]["nodeAgentAuthorizer"]
    lookups = ClusterLookups(
        client_of(question["source"]),
        client_of(question["target"]),
        settings.get("machineNamespace", ""),
    )
    by_selectors = settings.get("authorizeWithSelectors", False)
    endpoint = NodeAgentAuthorizer(lookups, by_selectors=by_selectors)
    answer: JsonObject = orjson.loads(await endpoint(JSON, orjson.dumps(question["review"])))
    status: JsonObject = answer["status"]
    return status
