"""Versions of Kubernetes, as users and Gardener write them."""

import pytest

from pergola.api.known.kubernetes_versions import parse_version


@pytest.mark.parametrize("text", ["1.34", "v1.34.0", "1.34.0-rc.1", "1.34.0+k3s1"])
def test_a_version_is_parsed(text: str) -> None:
    assert parse_version(text) == (1, 34, 0)


@pytest.mark.parametrize(
    "text", ["", "v", "1", "1.x", "1.34.", "1.34.0.1", "\u0661.\u0663", "1.34\n", "1" * 99]
)
def test_a_text_that_is_not_a_version_is_refused(text: str) -> None:
    assert parse_version(text) is None
