"""The options of `pergola up`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tour:
    """The options of the command."""

    once: bool
    name: str
    only: str | None
    simulated: bool
    examples: Path | None
    kubeconfig: Path | None
    context: str | None
    aws: bool = False

    @property
    def has_sandbox(self) -> bool:
        """Whether the chapters about managed resources have a sandbox of their own."""
        return self.kubeconfig is None

    @property
    def has_resources(self) -> bool:
        """Whether there are chapters about managed resources."""
        return self.only not in {"garden", "landscape"}

    @property
    def has_own_examples(self) -> bool:
        """Whether the examples are Pergola's, which later chapters build on."""
        return self.examples is None

    @property
    def has_garden(self) -> bool:
        """Whether a Garden comes up."""
        return self.only != "resources" and self.has_sandbox and self.has_own_examples

    @property
    def has_landscape(self) -> bool:
        """Whether the Garden gets a Seed and a Shoot."""
        return self.only == "landscape" and self.has_garden

    @property
    def chapters(self) -> int:
        """The number of chapters."""
        resources = self.has_sandbox + 1 + self.has_own_examples
        landscape = self.has_landscape * (2 + self.aws)
        return self.has_resources * resources + self.has_garden + landscape + 1
