import pytest

from pergola.bundle.image_reference import ImageReference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("pause", ("pause", "", "")),
        ("registry.k8s.io/pause:3.10", ("registry.k8s.io/pause", "3.10", "")),
        ("localhost:5000/pause", ("localhost:5000/pause", "", "")),
        ("localhost:5000/pause:3.10", ("localhost:5000/pause", "3.10", "")),
        (f"r.io/pause@{DIGEST}", ("r.io/pause", "", DIGEST)),
        (f"r.io/pause:3.10@{DIGEST}", ("r.io/pause", "3.10", DIGEST)),
    ],
)
def test_a_reference_is_split_into_its_parts(text: str, reference: tuple[str, str, str]) -> None:
    assert ImageReference.parse(text) == reference


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("pause", False),
        ("pause:latest", False),
        ("localhost:5000/pause", False),
        ("pause:3.10", True),
        (f"pause@{DIGEST}", True),
        (f"pause:latest@{DIGEST}", True),
    ],
)
def test_only_a_tag_or_digest_pins_an_image(text: str, pinned: bool) -> None:
    assert ImageReference.parse(text).is_pinned is pinned
