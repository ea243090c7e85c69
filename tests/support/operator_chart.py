"""The operator's chart as tests look at it: its objects, its pods, and its configuration file."""

from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.api.operator_config import OperatorConfiguration, configuration_from
from pergola.kube.yaml import parse
from pergola.sandbox.helm import render
from tests.support.charts import with_image

ACCOUNT: Final = Key("garden", "gardener-operator")
"""The ServiceAccount of the operator."""


class OperatorChart(NamedTuple):
    """The rendered objects, and the ones that most tests are about."""

    objects: list[JsonObject]

    @classmethod
    def rendered(cls, chart: Path, values: JsonObject | None = None) -> Self:
        """Render it with an image and these values."""
        return cls(render(chart, with_image(values)))

    def of(self, kind: str) -> list[JsonObject]:
        """Return the objects of a kind."""
        return [obj for obj in self.objects if obj["kind"] == kind]

    def one(self, kind: str) -> JsonObject:
        """Return the only object of a kind."""
        (found,) = self.of(kind)
        return found

    def named(self, prefix: str) -> JsonObject:
        """Return the only object whose name begins like this."""
        (found,) = (obj for obj in self.objects if name_of(obj).startswith(prefix))
        return found

    @property
    def pod(self) -> dict[str, Any]:
        """The template of the pods."""
        return map_at(self.one("Deployment"), "spec", "template")

    @property
    def spec(self) -> dict[str, Any]:
        """The specification of the pods."""
        return map_at(self.pod, "spec")

    @property
    def container(self) -> dict[str, Any]:
        """The only container."""
        (found,) = self.spec["containers"]
        return dict(found)

    @property
    def file(self) -> dict[str, Any]:
        """The configuration file, parsed."""
        text = self.named("gardener-operator-configmap-")["data"]["config.yaml"]
        found = parse(text)
        assert isinstance(found, dict)
        return found

    @property
    def config(self) -> OperatorConfiguration:
        """The configuration that the process reads from the file."""
        return configuration_from(self.file).config
