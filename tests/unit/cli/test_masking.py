"""No form of a Secret's value survives in a text or an object of a support bundle."""

import base64
import json
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, JsonValue
from pergola.cli.support.masking import MASK, Masker
from pergola.kube.yaml import dump
from pergola.pki import Authority
from pergola.runtime.clock import SystemClock

SALT: Final = b"salt"
VALUES: Final = st.one_of(
    st.text(min_size=8, max_size=80).filter(lambda text: len(text.strip()) >= 8),
    st.binary(min_size=8, max_size=80).map(lambda each: base64.b85encode(each).decode()),
)
AROUND: Final = st.text(alphabet="abc {}:\n\"'=/", max_size=7)


def secret(*values: bytes) -> JsonObject:
    data = {f"key-{number}": base64.b64encode(each).decode() for number, each in enumerate(values)}
    metadata = {"name": "web", "namespace": "demo"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def masker(*values: bytes) -> Masker:
    found = Masker(SALT)
    found.learn([secret(*values)])
    return found


def forms(value: str, before: str) -> list[str]:
    """Return texts in which people and programs embed a value."""
    document = f"{before}password: {value}"
    once = json.dumps({"value": value})
    encoded = base64.b64encode(value.encode()).decode()
    return [
        value,
        document,
        once,
        json.dumps({"nested": once}),
        encoded,
        base64.b64encode(document.encode()).decode(),
        base64.b64encode(f"{before}{encoded}".encode()).decode(),
        base64.urlsafe_b64encode(value.encode()).decode(),
    ]


@given(value=VALUES, before=AROUND, after=AROUND)
@example(value='"quoted"\\and\nlines', before="", after="")
@example(value="ünïcödë-välue", before="a", after="")
def test_no_form_of_a_value_survives(value: str, before: str, after: str) -> None:
    mask = masker(value.encode())
    for form in forms(value, before):
        masked = mask.text(f"{before}{form}{after}")
        assert value not in masked
        assert base64.b64encode(value.encode()).decode() not in masked
        assert value not in _decoded(masked)


def _decoded(text: str) -> str:
    """Return the base64 text in a masked text, decoded as far as it is any."""
    whole = "".join(part for part in text.split() if not part.startswith("<"))
    usable = whole[: len(whole) // 4 * 4]
    try:
        return base64.b64decode(usable, validate=True).decode(errors="replace")
    except ValueError:
        return ""


@given(value=VALUES)
def test_no_value_survives_in_an_object(value: str) -> None:
    copy = json.dumps({"data": {"a": value}})
    container: JsonValue = {"name": "web", "env": [{"name": "A", "value": value}], "args": [value]}
    obj: JsonObject = {
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"a": value, "x/last-applied": copy, value: ""}},
        "spec": {"template": {"spec": {"containers": [container]}}},
        "status": {"conditions": [{"message": f"cannot use {value}"}]},
    }
    masked = masker(value.encode()).object(obj)
    assert value not in _strings(masked)


def _strings(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "\0".join([*value, *map(_strings, value.values())])
    if isinstance(value, list):
        return "\0".join(map(_strings, value))
    return str(value)


def test_a_secret_keeps_names_and_keys() -> None:
    obj = secret(b"hunter2hunter2", b"x")
    masked = masker(b"hunter2hunter2", b"x").object(obj)
    assert masked["metadata"] == obj["metadata"]
    assert [*masked["data"]] == ["key-0", "key-1"]
    assert all(str(each).startswith("<masked ") for each in masked["data"].values())


def test_a_copy_of_a_value_has_the_mark_of_its_key() -> None:
    mask = masker(b"hunter2hunter2")
    mark = mask.object(secret(b"hunter2hunter2"))["data"]["key-0"]
    assert mask.text("login with hunter2hunter2 failed") == f"login with {mark} failed"


def test_equal_values_have_equal_marks_in_one_archive_only() -> None:
    texts = [masker(b"hunter2hunter2").text(f"is {each}hunter2") for each in ("hunter2", "hunter3")]
    other = Masker(b"pepper")
    other.learn([secret(b"hunter2hunter2")])
    assert texts[0].startswith("is <masked ")
    assert texts[1] == "is hunter3hunter2"
    assert other.text("is hunter2hunter2") != texts[0]


def test_lines_of_a_private_key_are_masked_on_their_own() -> None:
    now = SystemClock().now()
    key = Authority.create("test", now, now.resolution * 10**9).pair.private
    line = key.decode().splitlines()[1]
    assert line not in masker(key).text(f"    {line}")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        'a "token": "abcdefgh12345678", b',
        "token: abcdefgh12345678",
        r"{\"password\":\"abcdefgh12345678\"}",
        "-----BEGIN PRIVATE KEY-----\nabcdefgh12345678\n-----END PRIVATE KEY-----",
        "eyJhbGciOiJ.abcdefgh12345678.abcdefgh12345678",
        dump({"users": [{"user": {"client-key-data": "abcdefgh12345678"}}]}),
    ],
)
def test_credentials_without_a_secret_are_recognized(text: str) -> None:
    masked = Masker(SALT).text(text)
    assert "abcdefgh12345678" not in masked
    assert MASK in masked
    assert Masker(SALT).text(masked) == masked


def test_literal_values_of_sensitive_variables_are_masked_and_others_kept() -> None:
    variables: list[JsonValue] = [
        {"name": "DB_PASSWORD", "value": "ab"},
        {"name": "LOG_LEVEL", "value": "debug"},
        {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "aws"}}},
    ]
    containers: list[JsonValue] = [{"name": "web", "env": variables}]
    pod: JsonObject = {"kind": "Pod", "metadata": {}, "spec": {"containers": containers}}
    masked = Masker(SALT).object(pod)
    (container,) = masked["spec"]["containers"]
    assert container["env"] == [{"name": "DB_PASSWORD", "value": MASK}, *variables[1:]]


def test_copies_of_manifests_are_removed_also_where_a_status_repeats_annotations() -> None:
    copies: JsonObject = {"kubectl.kubernetes.io/last-applied-configuration": "c2hvcnQ=", "a": "b"}
    resources: list[JsonValue] = [{"kind": "Secret", "name": "web", "annotations": copies}]
    obj: JsonObject = {
        "kind": "ManagedResource",
        "metadata": {"annotations": copies},
        "status": {"resources": resources},
    }
    masked = Masker(SALT).object(obj)
    assert masked["metadata"]["annotations"] == {"a": "b"}
    assert masked["status"]["resources"][0]["annotations"] == {"a": "b"}


def test_compressed_and_binary_content_is_masked_whole() -> None:
    obj: JsonObject = {
        "kind": "ConfigMap",
        "metadata": {"annotations": {"release": "H4sIAAAAAAAA/8pIzcnJVyjPL8pJAQAAAP//"}},
        "binaryData": {"a": "AAAA"},
    }
    masked = Masker(SALT).object(obj)
    assert masked["binaryData"] == {"a": MASK}
    assert masked["metadata"]["annotations"] == {"release": MASK}
