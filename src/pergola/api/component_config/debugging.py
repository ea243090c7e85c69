"""How a running component can be examined."""

from typing import Literal

from pergola.api.schema.declare import Value

LogLevel = Literal["debug", "info", "error"]
LogFormat = Literal["json", "text"]


class Debugging(Value):
    """Profiles of the running process."""

    enable_profiling: bool = False
    """Whether profiles are served beside the metrics."""
    enable_contention_profiling: bool = False
    """Whether the profiles cover contention, too."""
