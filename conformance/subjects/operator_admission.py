"""Admission of the operator's Gardens and Extensions: by their schemas, and by the webhooks."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, refusals
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.questions import collected
from conformance.strategies.changes import changed
from conformance.strategies.garden_changes import gardens
from conformance.strategies.gardens import GARDEN, STORED, UNUSUAL, altered
from pergola.api.objects import JsonObject, JsonValue
from pergola.operator.webhooks.audit_policy import references_of
from pergola.operator.webhooks.offline import Stored, check_manifests

_NOW: Final = datetime(2026, 6, 1, tzinfo=UTC)
_POLICY: Final = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"
_HELM: Final = {
    "helm": {
        "ociRepository": {
            "repository": "registry.example.com/charts/a",
            "tag": "v1.0.0",
            "digest": "sha256:" + "a" * 64,
            "caBundleSecretRef": {"name": "ca"},
            "pullSecretRef": {"name": "pull"},
        }
    }
}
_HELM_REF: Final = {"helm": {"ociRepository": {"ref": "registry.example.com/charts/a:v1.0.0"}}}
_EXTENSION: Final[JsonObject] = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Extension",
    "metadata": {
        "name": "extension",
        "uid": "1",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "resources": [
            {
                "kind": "Extension",
                "type": "certificates",
                "primary": True,
                "autoEnable": ["shoot", "seed"],
                "clusterCompatibility": ["shoot", "seed", "garden"],
                "reconcileTimeout": "30s",
                "workerlessSupported": True,
                "lifecycle": {
                    "reconcile": "AfterKubeAPIServer",
                    "delete": "BeforeKubeAPIServer",
                    "migrate": "BeforeKubeAPIServer",
                },
            },
            {"kind": "BackupBucket", "type": "local", "primary": False},
            {"kind": "Worker", "type": "local"},
            {
                "kind": "SelfHostedShootExposure",
                "type": "local",
                "continuousEndpointUpdate": True,
            },
        ],
        "deployment": {
            "admission": {
                "runtimeCluster": _HELM,
                "virtualCluster": _HELM_REF,
                "values": {"a": {"b": "c"}},
            },
            "extension": {
                **_HELM,
                "values": {"a": "{{ .resources.first.data.token }}"},
                "runtimeClusterValues": {"a": "b"},
                "policy": "OnDemand",
                "injectGardenKubeconfig": True,
                "seedSelector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
                },
            },
            "resources": [
                {
                    "name": "first",
                    "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"},
                }
            ],
        },
    },
}
_TEXTS: Final = (
    *("Extension", "Worker", "BackupBucket", "DNSRecord", "Infrastructure", "Unknown", "Secret"),
    *("certificates", "local", "shoot", "seed", "garden", "none", "ConfigMap", "v1", "first"),
    *("AfterKubeAPIServer", "BeforeKubeAPIServer", "AfterWorker", "0s", "5m", "-1s", "s"),
    *("OnDemand", "Always", "AlwaysExceptNoShoots", "In", "NotIn", "Exists", "oci://a/b:c"),
    *("registry.example.com/a@sha256:" + "b" * 64, "registry.example.com", "a/b", "A/b:c"),
    *("{{ .resources.first.data.token }}", "{{ .resources.second.data.a }}", "{{", "{{ . }}"),
    *("{{ .resources.first.data.tls }}", "{{ if .resources }}a{{ end }}", "{{ .Values.a }}"),
    *("sha256:" + "a" * 64, "sha256:a", "md5:a"),
)
_BESIDE: Final[tuple[JsonObject, ...]] = (
    {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": {"name": "beside"},
        "spec": {
            "resources": [
                {"kind": "Extension", "type": name, "clusterCompatibility": clusters}
                for name, clusters in (("certificates", ["garden"]), ("backups", ["shoot"]))
            ]
        },
    },
)
_SELECTOR: Final = ("spec", "deployment", "extension", "seedSelector")
_Pair = tuple[JsonObject, JsonObject]
"""A new and an old object."""
_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata",))


def _extensions(base: JsonObject, most: int = 3) -> SearchStrategy[JsonObject]:
    return changed(base, most=most, texts=_TEXTS, keep=_IDENTITY)


class OperatorAdmission:
    """One of the operator's kinds.

    Args:
        create: a strategy for new objects.
        stored: old objects.
        unusual: objects that are always asked about, as new ones and as updates of the base.
        update: one for pairs of a new and an old object.
    """

    ask = "admission"
    of: OracleModule = GARDENER

    def __init__(
        self,
        name: str,
        title: str,
        code: tuple[str, ...],
        base: JsonObject,
        stored: Sequence[JsonObject],
        unusual: Sequence[JsonObject],
        create: SearchStrategy[JsonObject],
        update: SearchStrategy[_Pair],
    ) -> None:
        self.name = name
        self.title = title
        self.code = code
        self._base = base
        self._stored = stored
        self._unusual = unusual
        created = create.map(lambda new: _asked(new, None))
        updated = update.map(lambda pair: _asked(*pair))
        self._questions = created | updated

    def table(self) -> Iterator[JsonObject]:
        """Yield collected objects, one with all fields, and stored ones without a change."""
        yield from collected(self.name)
        yield _asked(self._base, None)
        for old in self._stored:
            yield _asked(old, old)
        for new in self._unusual:
            yield _asked(new, None)
            yield _asked(new, self._base)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return creations and updates; an old object is one that was admitted."""
        return self._questions

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the refused fields."""
        return {field: True for field, _ in _theirs(answer)}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Check the manifest offline, where everything that exists is known."""
        new, old = question["object"], question.get("old")
        stored = [*question["extensions"], *_policies(new)] + ([old] if old else [])
        checked = check_manifests([new], Stored(stored, is_complete=True), _NOW)
        ours = [(cause.field, cause.message) for each in checked for cause in each.causes]
        return refusals(_theirs(answer), ours)


def _theirs(answer: Answer) -> list[tuple[str, str]]:
    if answer.outcome != "output":
        return [("", str(answer.value))]
    return [(each["field"], each["detail"]) for each in answer.output["refusals"]]


def _asked(new: JsonObject, old: JsonObject | None) -> JsonObject:
    """Return a question; the status is the stored one, as in an API server."""
    new = {name: value for name, value in new.items() if name != "status"}
    if old is None:
        return {"object": new, "extensions": [*_BESIDE]}
    if "status" in old:
        new["status"] = old["status"]
    return {"object": new, "old": old, "extensions": [*_BESIDE]}


def _policies(garden: JsonObject) -> Iterator[JsonObject]:
    # Whether they exist is checked by another webhook.
    for name in references_of(garden).values() if garden["kind"] == "Garden" else ():
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "garden"},
            "data": {"policy": _POLICY},
        }


def _pairs(
    of: SearchStrategy[JsonObject], old: JsonObject
) -> SearchStrategy[tuple[JsonObject, JsonObject]]:
    return of.map(lambda new: (new, old))


GARDEN_SUBJECT: Final = OperatorAdmission(
    "garden",
    "Admission of Gardens",
    (
        "pergola.garden.rules",
        "pergola.operator.webhooks.garden",
        "pergola.operator.webhooks.offline",
    ),
    GARDEN,
    STORED,
    UNUSUAL,
    gardens(GARDEN),
    st.one_of([_pairs(gardens(old), old) for old in STORED]),
)
"""Gardens."""
EXTENSION_SUBJECT: Final = OperatorAdmission(
    "extension",
    "Admission of Extensions",
    ("pergola.operator.webhooks.extension", "pergola.operator.webhooks.offline"),
    _EXTENSION,
    (_EXTENSION,),
    (altered(_EXTENSION, ((*_SELECTOR, "matchExpressions"), [{"key": "a", "operator": "b"}])),),
    _extensions(_EXTENSION),
    _extensions(_EXTENSION, 1).flatmap(lambda old: _pairs(_extensions(old), old)),
)
"""Extensions."""
