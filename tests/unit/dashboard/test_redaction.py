"""No value of a Secret leaves the process, whatever else contains a copy of it."""

import base64
import gzip
from typing import Final

import orjson
import pytest

from pergola.api.objects import JsonObject, annotations_of
from pergola.dashboard.server.redaction import redacted

HUSH: Final = "hush-3f9c"
ENCODED: Final = base64.b64encode(HUSH.encode()).decode()
MANIFEST: Final = orjson.dumps(
    {"apiVersion": "v1", "kind": "Secret", "data": {"password": ENCODED}}
).decode()
ZIPPED: Final = base64.b64encode(gzip.compress(MANIFEST.encode())).decode()
COPIES: Final = {
    "kubectl.kubernetes.io/last-applied-configuration": MANIFEST,
    "kapp.k14s.io/original": MANIFEST,
    "kapp.k14s.io/original-diff": f'[{{"op":"add","path":"/data","value":"{ENCODED}"}}]',
    "kapp.k14s.io/original-diff-full": f"+ password: {ENCODED}",
    "objectset.rio.cattle.io/applied": ZIPPED,
    "banzaicloud.com/last-applied": ZIPPED,
    "openshift.io/token-secret.value": HUSH,
    "example.org/anything": MANIFEST,
    "example.org/packed": ZIPPED,
    "example.org/yaml": f"kind: Secret\ndata:\n  password: {ENCODED}\n",
    "example.org/plain": f"the password is {HUSH}",
}
HARMLESS: Final = {"meta.helm.sh/release-name": "web", "example.org/note": "of team a"}


def secret(**fields: JsonObject) -> JsonObject:
    metadata = {"name": "a", "annotations": {**COPIES, **HARMLESS}, "managedFields": [{}]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **fields}


@pytest.mark.parametrize("kind", ["Secret", "InternalSecret"])
@pytest.mark.parametrize(
    "fields", [{"data": {"password": ENCODED}}, {"stringData": {"password": HUSH}}], ids=str
)
def test_no_annotation_shows_the_value_of_a_secret(
    kind: str, fields: dict[str, JsonObject]
) -> None:
    shown = redacted({**secret(**fields), "kind": kind})
    text = orjson.dumps(shown).decode()
    for value in (HUSH, ENCODED, ZIPPED[:40]):
        assert value not in text
    assert HARMLESS.items() <= annotations_of(shown).items()
    assert [*shown.values()][-1] == {"password": f"{len(HUSH)} bytes"}


def test_a_managed_resource_does_not_show_the_copy_of_its_secret() -> None:
    entry = {"kind": "Secret", "name": "a", "annotations": secret()["metadata"]["annotations"]}
    plain = {"kind": "ConfigMap", "name": "b", "annotations": {"example.org/json": "{}"}}
    shown = redacted({"kind": "ManagedResource", "status": {"resources": [entry, plain]}})
    text = orjson.dumps(shown["status"]["resources"][0]).decode()
    assert MANIFEST not in text
    assert "kapp" not in text
    assert ZIPPED[:40] not in text
    assert "of team a" in text
    assert shown["status"]["resources"][1] == plain


def test_a_secret_without_annotations_gets_none() -> None:
    assert redacted({"kind": "Secret", "metadata": {"name": "a"}}) == {
        "kind": "Secret",
        "metadata": {"name": "a"},
    }
