"""Names of immutable ConfigMaps and Secrets, and the annotations of those who use them."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences, refusals
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue, without_empty
from pergola.bundle.errors import BundleError
from pergola.bundle.names import make_unique
from pergola.bundle.references import annotate, reference_key

_NAMES: Final = st.sampled_from(["a", "b", "a-1", "x" * 63])
_LABELS: Final = st.dictionaries(
    st.sampled_from(["a", marks.GARBAGE_COLLECTABLE]), st.sampled_from(["x", "false"]), max_size=2
)
_KEYS: Final = st.sampled_from(["a", "b", "B", "a.b", "1"])
_BYTES: Final = st.sampled_from(["", "eA==", "eQ==", "AAH/"])
_TEXTS: Final = st.sampled_from(["", "x", "y", "ä", "x\n"])


def _named(kind: str, fields: dict[str, SearchStrategy[Any]]) -> SearchStrategy[JsonObject]:
    metadata = some(
        {"labels": _LABELS, "annotations": _LABELS},
        {"name": st.sampled_from(["a", "a-", "managedresource-x", "x" * 200]), "namespace": _NAMES},
    )
    return some(fields, {"apiVersion": st.just("v1"), "kind": st.just(kind), "metadata": metadata})


# The API server prefers stringData to data of the same key; the hash of the original is of data.
_UNIQUE: Final = _named(
    "ConfigMap",
    {
        "data": st.dictionaries(_KEYS, _TEXTS, max_size=3),
        "binaryData": st.dictionaries(st.sampled_from(["c", "z"]), _BYTES, max_size=2),
        "immutable": st.booleans(),
    },
) | _named(
    "Secret",
    {
        "data": st.dictionaries(_KEYS, _BYTES, max_size=3),
        "stringData": st.dictionaries(st.sampled_from(["c", "z"]), _TEXTS, max_size=2),
        "type": st.just("Opaque"),
        "immutable": st.booleans(),
    },
)
_REFERENCE: Final = st.fixed_dictionaries({"name": _NAMES})
_KEY_REFERENCE: Final = st.fixed_dictionaries({"name": _NAMES, "key": st.just("k")})
_ENV: Final = st.one_of(
    st.just({"name": "E", "value": "x"}),
    st.just({"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
    *(
        st.fixed_dictionaries(
            {"name": st.just("E"), "valueFrom": st.fixed_dictionaries({field: _KEY_REFERENCE})}
        )
        for field in ("configMapKeyRef", "secretKeyRef")
    ),
)
_FROM: Final = st.one_of(
    *(st.fixed_dictionaries({field: _REFERENCE}) for field in ("configMapRef", "secretRef"))
)
_CONTAINERS: Final = st.lists(
    some(
        {"env": st.lists(_ENV, max_size=2), "envFrom": st.lists(_FROM, max_size=2)},
        {"name": st.sampled_from(["c", "d"]), "image": st.just("i")},
    ),
    max_size=2,
)
_PROJECTED: Final = st.lists(
    st.one_of(
        *(st.fixed_dictionaries({field: _REFERENCE}) for field in ("configMap", "secret")),
        st.just({"serviceAccountToken": {"path": "token"}}),
    ),
    max_size=2,
)
_VOLUMES: Final = st.lists(
    st.one_of(
        st.just({"name": "v", "emptyDir": {"medium": "Memory"}}),
        st.fixed_dictionaries({"name": st.just("v"), "configMap": _REFERENCE}),
        st.fixed_dictionaries(
            {"name": st.just("v"), "secret": st.fixed_dictionaries({"secretName": _NAMES})}
        ),
        st.fixed_dictionaries(
            {"name": st.just("v"), "projected": st.fixed_dictionaries({"sources": _PROJECTED})}
        ),
    ),
    max_size=3,
)
_PODS: Final = some(
    {
        "volumes": _VOLUMES,
        "imagePullSecrets": st.lists(_REFERENCE, max_size=2),
        "serviceAccountName": st.just("a"),
    },
    {"containers": _CONTAINERS},
)
_NOTES: Final = st.dictionaries(
    st.sampled_from(["a", reference_key("secret", "a"), reference_key("configmap", "old")]),
    st.sampled_from(["a", "old", ""]),
    max_size=2,
)
_METADATA: Final = some({"annotations": _NOTES, "labels": _LABELS})


def _template(pods: SearchStrategy[JsonObject]) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"metadata": _METADATA, "spec": pods})


def _with_template(pods: SearchStrategy[JsonObject]) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"template": _template(pods)})


_AUTHENTICATION: Final = st.fixed_dictionaries(
    {"username": _KEY_REFERENCE, "password": _KEY_REFERENCE}
)
_SPECS: Final[dict[tuple[str, str], SearchStrategy[JsonObject]]] = {
    ("v1", "Pod"): _PODS,
    ("apps/v1", "Deployment"): _with_template(_PODS),
    ("apps/v1", "StatefulSet"): _with_template(_PODS),
    ("apps/v1", "DaemonSet"): _with_template(_PODS),
    ("batch/v1", "Job"): _with_template(_PODS),
    ("batch/v1", "CronJob"): st.fixed_dictionaries(
        {
            "schedule": st.just("* * * * *"),
            "jobTemplate": st.fixed_dictionaries(
                {"metadata": _METADATA, "spec": _with_template(_PODS)}
            ),
        }
    ),
    ("resources.gardener.cloud/v1alpha1", "ManagedResource"): st.fixed_dictionaries(
        {"secretRefs": st.lists(_REFERENCE, max_size=3)}
    ),
    ("monitoring.coreos.com/v1", "Prometheus"): some(
        {
            "volumes": _VOLUMES,
            "remoteWrite": st.lists(
                some({"basicAuth": _AUTHENTICATION}, {"url": st.just("https://example.com")}),
                max_size=2,
            ),
        },
        {"containers": _CONTAINERS},
    ),
    ("v1", "Service"): st.just({"type": "ClusterIP"}),
}
"""Kinds with the places that the original reads; Pergola also reads init containers and others."""


def _user(kind: tuple[str, str]) -> SearchStrategy[JsonObject]:
    return st.builds(
        lambda metadata, spec: {
            "apiVersion": kind[0],
            "kind": kind[1],
            "metadata": {"name": "u", "namespace": "n", **metadata},
            "spec": spec,
        },
        _METADATA,
        _SPECS[kind],
    )


class UniqueNames:
    """An object as it is written, with a unique name or with annotations."""

    name = "unique-names"
    ask = "unique-names"
    title = "Unique names and references to them"
    of: OracleModule = GARDENER
    code = ("pergola.bundle.names", "pergola.bundle.references")

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return ConfigMaps and Secrets, and objects that use some."""
        users = st.sampled_from(sorted(_SPECS)).flatmap(_user)
        return st.fixed_dictionaries(
            {
                "object": users | users | _UNIQUE,
                "additional": st.lists(
                    st.sampled_from([reference_key("secret", "z"), reference_key("secret", "a")]),
                    max_size=1,
                ),
            }
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the object; an error is a refusal."""
        return _essence(answer.output) if answer.outcome == "output" else "refused"

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the objects."""
        theirs = [] if answer.outcome == "output" else [("object", str(answer.value))]
        obj = question["object"]
        try:
            if obj["kind"] in ("ConfigMap", "Secret"):
                ours = make_unique(obj)
            else:
                ours = annotate(obj, *question["additional"])
        except BundleError as error:
            return refusals(theirs, [("object", str(error))])
        if theirs:
            return refusals(theirs, [])
        return differences(_essence(answer.output), _essence({"object": ours}))


def _essence(answer: JsonObject) -> JsonValue:
    obj = {name: value for name, value in answer["object"].items() if name != "status"}
    found: JsonValue = without_empty(_annotated(obj))
    return found


def _annotated(value: Any) -> Any:
    """Return metadata only: the rest is the question's, completed by the original's types."""
    kept = ("metadata", "spec", "template", "jobTemplate", "immutable", "data", "binaryData")
    if not isinstance(value, dict):
        return value
    return {
        name: below if name in ("metadata", "data", "binaryData") else _annotated(below)
        for name, below in value.items()
        if name in kept
    }
