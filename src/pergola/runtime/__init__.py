"""The machinery that runs controllers: caches, queues, units, and the process around them.

Knows no kind of object: what a controller decides lives elsewhere. `examples/controller` is a
complete controller built on these names. A command that imports one module of this package, such as
its clock, imports no other.
"""

from typing import TYPE_CHECKING, Final

from pergola import lazy_names

if TYPE_CHECKING:
    from pergola.runtime.caching.cache import Cache, Change
    from pergola.runtime.caching.caches import Caches
    from pergola.runtime.caching.index import Index
    from pergola.runtime.clock import Clock, SystemClock
    from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
    from pergola.runtime.controlling.events import Recorder, Regarding
    from pergola.runtime.controlling.unit import Controller, Unit
    from pergola.runtime.controlling.watches import (
        Events,
        Watch,
        all_of,
        changed,
        exists,
        later,
        one_key,
        owners,
    )
    from pergola.runtime.logging import configure, get_logger
    from pergola.runtime.metrics import Metrics
    from pergola.runtime.process.application import Application, Probes
    from pergola.runtime.process.options import (
        Address,
        Election,
        LeaseTimes,
        ProcessOptions,
        StartError,
    )
    from pergola.runtime.process.program import run

__all__ = [
    "DONE",
    "Address",
    "Again",
    "Application",
    "Cache",
    "Caches",
    "Change",
    "Clock",
    "Controller",
    "Election",
    "Events",
    "Index",
    "LeaseTimes",
    "Metrics",
    "Outcome",
    "Probes",
    "ProcessOptions",
    "ReconcileError",
    "Recorder",
    "Regarding",
    "StartError",
    "SystemClock",
    "Unit",
    "Watch",
    "all_of",
    "changed",
    "configure",
    "exists",
    "get_logger",
    "later",
    "one_key",
    "owners",
    "run",
]

_NAMES: Final = {
    "caching.cache": ("Cache", "Change"),
    "caching.caches": ("Caches",),
    "caching.index": ("Index",),
    "clock": ("Clock", "SystemClock"),
    "controlling.controller": ("DONE", "Again", "Outcome", "ReconcileError"),
    "controlling.events": ("Recorder", "Regarding"),
    "controlling.unit": ("Controller", "Unit"),
    "controlling.watches": (
        "Events",
        "Watch",
        "all_of",
        "changed",
        "exists",
        "later",
        "one_key",
        "owners",
    ),
    "logging": ("configure", "get_logger"),
    "metrics": ("Metrics",),
    "process.application": ("Application", "Probes"),
    "process.options": ("Address", "Election", "LeaseTimes", "ProcessOptions", "StartError"),
    "process.program": ("run",),
}

__getattr__ = lazy_names(__name__, _NAMES)
