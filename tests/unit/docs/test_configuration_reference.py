"""`docs/configuration.md` describes the configuration that the resource manager reads."""

import os
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config import API_VERSION, KIND, configuration_from
from pergola.api.resource_manager_config.v1alpha1 import ResourceManagerConfiguration
from pergola.api.schema.reference import Field, fields_of, markdown

PAGE: Final = Path(__file__).parents[3] / "docs" / "configuration.md"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def reference() -> str:
    """Return the generated part of the page: one table for each top-level field."""
    minimal: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": {"leaderElect": False},
    }
    defaults = configuration_from(minimal, source="the reference").config
    sections: dict[str, list[Field]] = {}
    for field in fields_of(ResourceManagerConfiguration, defaults):
        first = field.path.partition(".")[0]
        is_alone = field.path == first and field.type != "map"
        sections.setdefault("general" if is_alone else first, []).append(field)
    return "\n".join(f"## {name}\n\n{markdown(fields)}" for name, fields in sections.items())


def test_the_reference_has_every_field_of_the_configuration() -> None:
    page = PAGE.read_text()
    written = page.partition(BEGIN)[2]
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(page.partition(BEGIN)[0] + BEGIN + reference())
        return
    assert written == reference()


def test_every_field_has_a_description() -> None:
    assert [field.path for field in fields_of(ResourceManagerConfiguration) if not field[3]] == []
