"""Limits that prevent a chart from filling disk or memory, or from keeping Helm busy."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one chart.

    Attributes:
        manifest_bytes: The size of the manifest in the registry.
        archive_bytes: The size of the chart as stored in the registry.
        unpacked_bytes: The total size of all its files.
        files: The number of its files and folders.
        rendered_bytes: The size of the objects as printed by Helm.
        pull_seconds: The time limit for all requests of one pull.
        render_seconds: The time limit for one run of Helm.
    """

    manifest_bytes: int = 4 * MIB
    archive_bytes: int = 20 * MIB
    unpacked_bytes: int = 64 * MIB
    files: int = 10_000
    rendered_bytes: int = 16 * MIB
    pull_seconds: float = 60.0
    render_seconds: float = 60.0


DEFAULT_LIMITS: Final = Limits()
