"""Each component's page of configuration describes the file that the component reads."""

import os
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.api import operator_config, resource_manager_config
from pergola.api.objects import JsonObject
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.resource_manager_config.v1alpha1 import ResourceManagerConfiguration
from pergola.api.schema import Value
from tools.schema_reference import Field, fields_of, markdown

DOCS: Final = Path(__file__).parents[3] / "docs"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


class Page(NamedTuple):
    """A page, the type that it describes, and that type's defaults."""

    name: str
    type: type[Value]
    defaults: Value


def pages() -> list[Page]:
    """Return the page of every component."""
    header: JsonObject = {
        "apiVersion": resource_manager_config.API_VERSION,
        "kind": resource_manager_config.KIND,
        "leaderElection": {"leaderElect": False},
    }
    manager = resource_manager_config.configuration_from(header, source="the reference").config
    header = {"apiVersion": operator_config.API_VERSION, "kind": operator_config.KIND}
    operator = operator_config.configuration_from(header, source="the reference").config
    return [
        Page("reference/configuration.md", ResourceManagerConfiguration, manager),
        Page("reference/operator-configuration.md", OperatorConfiguration, operator),
    ]


def reference(page: Page) -> str:
    """Return the generated part of a page: one table for each top-level field."""
    sections: dict[str, list[Field]] = {}
    for field in fields_of(page.type, page.defaults):
        first = field.path.partition(".")[0]
        is_alone = field.path == first and field.type != "map"
        sections.setdefault("general" if is_alone else first, []).append(field)
    return "\n".join(f"## {name}\n\n{markdown(fields)}" for name, fields in sections.items())


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_reference_has_every_field_of_the_configuration(page: Page) -> None:
    path = DOCS / page.name
    text = path.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        path.write_text(text.partition(BEGIN)[0] + BEGIN + reference(page))
        return
    assert text.partition(BEGIN)[2] == reference(page)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_field_has_a_description(page: Page) -> None:
    assert [field.path for field in fields_of(page.type) if not field.description] == []
