"""The lifecycle of extension resources: from an annotation to an outcome (spec 40 §2).

`predicates` (triggers) → `reconcile` (the numbered steps) → `operation` (the next operation) →
`report` (the actuator's progress and outcome) with `status` (the patches).
"""

from pergola.extensions.lifecycle.controller import extension_controller
from pergola.extensions.lifecycle.operation import Operation
from pergola.extensions.lifecycle.reconcile import Settings

__all__ = ["Operation", "Settings", "extension_controller", "finalizer_of"]
