"""The page about Cluster API describes every field of a description, and every reason."""

import os
from pathlib import Path
from typing import Final

from pergola.externally_managed.description import NetworkValue
from pergola.externally_managed.mark import INVALID, MARKED, NO_ENDPOINT, WITHDRAWN
from pergola.externally_managed.status import PERGOLA_REASONS
from pergola.kube.yaml import parse_documents
from tools.schema_reference import fields_of, markdown

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "cluster-api.md"
CHART: Final = Path(__file__).parents[3] / "charts" / "infra-manager"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def test_the_reference_has_every_field_of_a_description() -> None:
    page = PAGE.read_text()
    reference = markdown(fields_of(NetworkValue))
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(page.partition(BEGIN)[0] + BEGIN + reference)
        return
    assert page.partition(BEGIN)[2] == reference


def test_every_reason_of_the_ready_condition_is_explained() -> None:
    page = PAGE.read_text()
    reasons = (*PERGOLA_REASONS, MARKED, WITHDRAWN, INVALID, NO_ENDPOINT)
    assert [reason for reason in reasons if f"`{reason}`" not in page] == []


def test_the_roles_of_the_chart_are_valid_yaml() -> None:
    kinds = [
        document.value["kind"]
        for document in parse_documents((CHART / "rbac.yaml").read_bytes())
        if isinstance(document.value, dict)
    ]
    assert kinds == ["ClusterRole"] * 4
