"""References to charts."""

import pytest

from pergola.charts import ChartReference, InvalidReference

DIGEST = "sha256:" + "a1" * 32


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("registry.example/charts/dns:1.2.3", ("registry.example", "charts/dns", "1.2.3", "")),
        ("oci://registry.example:5000/dns:v1", ("registry.example:5000", "dns", "v1", "")),
        (f"localhost/dns@{DIGEST}", ("localhost", "dns", "", DIGEST)),
        (f"oci://r.example/a_b/c--d:1@{DIGEST}", ("r.example", "a_b/c--d", "1", DIGEST)),
        ("[::1]:5000/dns:1", ("[::1]:5000", "dns", "1", "")),
    ],
)
def test_a_reference_has_a_registry_a_repository_and_a_version(
    text: str, parts: tuple[str, str, str, str]
) -> None:
    assert ChartReference.parse(text) == ChartReference(*parts)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dns:1.2.3", "has no registry"),
        ("charts/dns:1.2.3", "has no registry"),
        ("http://registry.example/dns:1", "has no registry"),
        ("registry.example/DNS:1", "has no valid repository"),
        ("registry.example/../dns:1", "has no valid repository"),
        ("registry.example/dns", "has no version"),
        ("registry.example/dns:", "has no valid tag or digest"),
        ("registry.example/dns@sha256:abc", "has no valid tag or digest"),
        ("registry.example/dns@sha512:" + "0" * 128, "has no valid tag or digest"),
        ("user@registry.example/dns:1", "has no registry"),
        ("", "has no registry"),
    ],
)
def test_the_error_about_an_invalid_reference_shows_a_valid_one(text: str, problem: str) -> None:
    with pytest.raises(InvalidReference, match=problem) as caught:
        ChartReference.parse(text)
    assert f'"{text}"' in str(caught.value)


def test_the_digest_of_a_repository_takes_precedence_over_its_tag() -> None:
    source = {"repository": "oci://registry.example/dns", "tag": "1.2.3", "digest": DIGEST}

    reference = ChartReference.of(source)

    assert reference.version == DIGEST
    assert str(reference) == f"oci://registry.example/dns@{DIGEST}"
    tagged = ChartReference.of({"repository": "registry.example/dns", "tag": "1.2.3"})
    assert tagged.version == "1.2.3"
    whole = ChartReference.of({"ref": "oci://registry.example/dns:2"})
    assert str(whole) == "oci://registry.example/dns:2"


@pytest.mark.parametrize(
    ("registry", "is_local"),
    [
        ("127.0.0.1:5000", True),
        ("[::1]:5000", True),
        ("localhost:5000", True),
        ("registry.local.gardener.cloud:5001", True),
        ("10.1.2.3:5000", False),
        ("registry.example", False),
        ("127.0.0.1.example:5000", False),
    ],
)
def test_only_local_registries_are_used_without_tls(registry: str, is_local: bool) -> None:
    assert ChartReference(registry, "dns", "1").is_local is is_local
