"""References to variables in the arguments of containers."""

import pytest

from pergola.sandbox.process_node.process import expanded

VARIABLES = {"FILE": "/srv/config", "DOTTED.NAME-1": "x", "EMPTY": "", "NESTED": "$(FILE)"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--kubeconfig=$(FILE)", "--kubeconfig=/srv/config"),
        ("$(FILE)$(FILE)", "/srv/config/srv/config"),
        ("$(DOTTED.NAME-1)", "x"),
        ("a$(EMPTY)b", "ab"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$(NESTED)", "$(FILE)"),
        ("$$(FILE)", "$(FILE)"),
        ("$$$(FILE)", "$/srv/config"),
        ("$FILE $( $(1) $()", "$FILE $( $(1) $()"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_by_a_kubelet(text: str, expected: str) -> None:
    assert expanded(text, VARIABLES) == expected
