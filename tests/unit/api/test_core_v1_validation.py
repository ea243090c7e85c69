from typing import Any

import pytest

from pergola.api import core_v1_validation as rules
from pergola.api.core_v1 import LabelSelector, LabelSelectorRequirement, Toleration


@pytest.mark.parametrize("text", ["", "a", "A.b_c-9", "x" * 63])
def test_valid_label_values(text: str) -> None:
    assert rules.is_label_value(text)


@pytest.mark.parametrize("text", ["-a", "a-", "a b", "ä", "x" * 64, "a\n"])
def test_texts_that_are_not_label_values(text: str) -> None:
    assert not rules.is_label_value(text)


@pytest.mark.parametrize("text", ["a", "example.org/Name", "a.b-c.d/x_y.z"])
def test_valid_label_keys(text: str) -> None:
    assert rules.is_label_key(text)


@pytest.mark.parametrize("text", ["", "/a", "a/", "a/b/c", "Example.org/a", "-x.org/a", "a b"])
def test_texts_that_are_not_label_keys(text: str) -> None:
    assert not rules.is_label_key(text)


@pytest.mark.parametrize("text", ["a", "a-b.c9", "x" * 64, "x" * 253])
def test_valid_names_of_objects(text: str) -> None:
    assert rules.is_dns_subdomain(text)


@pytest.mark.parametrize(
    "text", ["", "a.", ".a", "a..b", "-a", "a-.b", "A", "a_b", "x" * 254, "a\n"]
)
def test_texts_that_are_not_names_of_objects(text: str) -> None:
    assert not rules.is_dns_subdomain(text)


def requirement(**changes: Any) -> LabelSelector:
    content = {"key": "a", "operator": "In", "values": ["b"]} | changes
    return LabelSelector(match_expressions=[LabelSelectorRequirement(**content)])


@pytest.mark.parametrize(
    ("selector", "path"),
    [
        (LabelSelector(match_labels={"a b": "c"}), "s.matchLabels[a b]"),
        (LabelSelector(match_labels={"a": "c d"}), "s.matchLabels[a]"),
        (requirement(key=""), "s.matchExpressions[0].key"),
        (requirement(values=[]), "s.matchExpressions[0].values"),
        (requirement(operator="NotIn", values=[]), "s.matchExpressions[0].values"),
        (requirement(operator="Exists"), "s.matchExpressions[0].values"),
        (requirement(operator="DoesNotExist"), "s.matchExpressions[0].values"),
        (requirement(values=["ok", "not ok"]), "s.matchExpressions[0].values[1]"),
    ],
)
def test_invalid_selectors_are_reported(selector: LabelSelector, path: str) -> None:
    assert [f.path for f in rules.selector_findings(selector, "s")] == [path]


@pytest.mark.parametrize(
    "selector",
    [
        LabelSelector(),
        LabelSelector(match_labels={"gardener.cloud/role": "shoot"}),
        requirement(),
        requirement(operator="Exists", values=[]),
    ],
)
def test_valid_selectors_have_no_findings(selector: LabelSelector) -> None:
    assert list(rules.selector_findings(selector, "s")) == []


@pytest.mark.parametrize(
    ("toleration", "path"),
    [
        (Toleration(key="a b"), "t.key"),
        (Toleration(), "t.operator"),
        (Toleration(operator="Equal"), "t.operator"),
        (Toleration(key="a", operator="Exists", value="b"), "t.value"),
        (Toleration(key="a", value="b c"), "t.value"),
        (Toleration(key="a", toleration_seconds=5), "t.effect"),
        (Toleration(key="a", toleration_seconds=5, effect="NoSchedule"), "t.effect"),
    ],
)
def test_invalid_tolerations_are_reported(toleration: Toleration, path: str) -> None:
    assert [f.path for f in rules.toleration_findings(toleration, "t")] == [path]


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(operator="Exists"),
        Toleration(key="a", value="b"),
        Toleration(key="a", effect="NoExecute", toleration_seconds=0),
    ],
)
def test_valid_tolerations_have_no_findings(toleration: Toleration) -> None:
    assert list(rules.toleration_findings(toleration, "t")) == []
