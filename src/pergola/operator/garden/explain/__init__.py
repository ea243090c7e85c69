"""Why something of a Garden is there, skipped, unhealthy or stuck.

`subjects` finds what a name means, `walk` goes from an object down to its cause, one module for
each kind of step, and `answers` puts it together. `advice` says what to do next.

Everything is read, nothing is written. Not for: the states of tasks, which `picture` decides.
"""

from pergola.operator.garden.explain.answers import answer
from pergola.operator.garden.explain.finding import Answer, Finding
from pergola.operator.garden.explain.subjects import Unknown
from pergola.operator.garden.explain.walk import explain

__all__ = ["Answer", "Finding", "Unknown", "answer", "explain"]
