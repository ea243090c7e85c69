"""Why a part of a Garden exists, is skipped, unhealthy or stuck.

`subjects` resolves names, `walk` goes from an object down to its cause, with one module for each
kind of step, and `answers` combines the results. `advice` says what to do next.

Everything is read-only. Not for: the states of tasks, which `picture` determines.
"""

from pergola.operator.reconcile.explain.answers import answer
from pergola.operator.reconcile.explain.finding import Answer, Finding
from pergola.operator.reconcile.explain.subjects import Unknown
from pergola.operator.reconcile.explain.walk import explain

__all__ = ["Answer", "Finding", "Unknown", "answer", "explain"]
