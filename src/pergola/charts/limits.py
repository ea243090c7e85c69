"""Limits that keep a chart from filling disk or memory, or from keeping Helm busy."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one chart.

    Attributes:
        manifest_bytes: Of the manifest in the registry.
        archive_bytes: Of the chart as it is stored in the registry.
        unpacked_bytes: Of all its files together.
        files: The number of its files and folders.
        rendered_bytes: Of the objects as Helm prints them.
        pull_seconds: For all requests of one pull.
        render_seconds: For one run of Helm.
    """

    manifest_bytes: int = 4 * MIB
    archive_bytes: int = 20 * MIB
    unpacked_bytes: int = 64 * MIB
    files: int = 10_000
    rendered_bytes: int = 16 * MIB
    pull_seconds: float = 60.0
    render_seconds: float = 60.0


DEFAULT_LIMITS: Final = Limits()
