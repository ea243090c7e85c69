"""Debugging options of a running component."""

from typing import Literal

from pergola.api.schema.declare import Value

LogLevel = Literal["debug", "info", "error"]
LogFormat = Literal["json", "text"]


class Debugging(Value):
    """Profiles of the running process."""

    enable_profiling: bool = False
    """Whether to serve profiles along with the metrics."""
    enable_contention_profiling: bool = False
    """Whether the profiles include contention."""
