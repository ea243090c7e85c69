"""Each explainer can be imported, and webhooks are asked about every kind that they review."""

import pytest

from pergola.resource_manager.webhooks.explanation import REVIEWED_KINDS, ReviewedKind
from pergola.why import Explainer
from pergola.why.catalog import EXPLAINERS, Imported


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda it: it.name)
def test_an_explainer_can_be_imported(explainer: Explainer) -> None:
    assert isinstance(explainer.explain, Imported)
    assert callable(explainer.explain.function())


@pytest.mark.parametrize("kind", REVIEWED_KINDS, ids=lambda it: it.gvk.kind)
def test_webhooks_are_asked_about_every_kind_that_they_review(kind: ReviewedKind) -> None:
    [webhooks] = [each for each in EXPLAINERS if each.name == "webhooks"]
    assert webhooks.applies({"apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind})
