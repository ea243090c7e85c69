"""The Helm charts of Pergola, as a table for tests that apply to all of them."""

from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at
from pergola.sandbox.helm import helm, render
from pergola.shipped import CHARTS

IMAGE: Final = "registry.example/pergola"
"""The repository of the image, which a sandbox provides under this name."""


def with_image(values: JsonObject | None = None) -> JsonObject:
    """Return values of a chart with the image, unless they name one."""
    given = values or {}
    return {**given, "image": {"repository": IMAGE, **map_at(given, "image")}}


class ChartCase(NamedTuple):
    """A chart with what tests need to render it.

    Attributes:
        name: The name of its folder.
        namespace: The namespace in which it is installed.
        has_pods: Whether it runs a process, or only grants permissions.
        of_gardener: Whether Gardener installs it, and gives it values.
    """

    name: str
    namespace: str = "extension"
    has_pods: bool = True
    of_gardener: bool = True

    @property
    def folder(self) -> Path:
        """The folder of the chart."""
        return CHARTS / self.name

    def rendered(self, values: JsonObject | None = None) -> list[JsonObject]:
        """Return its objects with an image and these values; raises as `render` does."""
        return render(self.folder, with_image(values), namespace=self.namespace)

    def linted(self) -> str:
        """Return Helm's findings about it; raises as `helm` does."""
        where = ("--namespace", self.namespace)
        return helm("lint", str(self.folder), *where, "--strict", values=with_image())


OPERATOR: Final = ChartCase("operator", "garden")
RESOURCE_MANAGER: Final = ChartCase("resource-manager", "garden", of_gardener=False)
INFRA_MANAGER: Final = ChartCase("infra-manager", "pergola-system", of_gardener=False)
ALL_CHARTS: Final = (
    OPERATOR,
    RESOURCE_MANAGER,
    ChartCase("networking-calico"),
    ChartCase("networking-cilium"),
    ChartCase("extension-aws"),
    ChartCase("extension-admission-runtime"),
    ChartCase("extension-admission-virtual", has_pods=False),
    ChartCase("dashboard", "pergola-system", of_gardener=False),
    INFRA_MANAGER,
)
