"""Why an object is unhealthy, down to the container, its last log line and the last Event.

`walk` goes from an object down to its cause, with one module for each kind of step. `advice` says
what to do next.
"""

from pergola.why.health.walk import explain, unhealthy

__all__ = ["explain", "unhealthy"]
