"""Flows: graphs of small idempotent tasks that run in parallel, are retried, and can be drawn.

```python
graph = Graph("Infrastructure reconciliation")
vpc = graph.add("ensure VPC", ensure_vpc, timeout=90)
graph.add("ensure gateway", ensure_gateway, after=[vpc], skip=None if desired else "no public zone")

state = State(status_data)  # the tasks read it, and record what they created
await run(graph, saver=Saver(state, write), progress=Progress(graph, report))
```

A flow that was killed anywhere starts from the beginning: tasks find what they created before in
the `State`. `picture` draws a graph before or after its run; `metrics` counts runs and tasks.

This room does not depend on the work of tasks: no API server, no cloud.
"""

from pergola.flow.errors import (
    FAILED_TO,
    TASK_FAILED,
    Cycle,
    DuplicateTask,
    FlowError,
    FlowFailed,
    GraphError,
    StateNotSaved,
    TaskFailed,
    UnknownDependency,
)
from pergola.flow.graph import Action, CriticalPath, Graph, Skip, Task
from pergola.flow.outcome import Ended, Observer, Outcome, Result
from pergola.flow.progress import Progress, Report, Reporter
from pergola.flow.retry import ONCE, Diagnose, Diagnosis, Retry
from pergola.flow.run import Settings, run
from pergola.flow.saving import Saver, Write
from pergola.flow.state import State

__all__ = [
    "FAILED_TO",
    "ONCE",
    "TASK_FAILED",
    "Action",
    "CriticalPath",
    "Cycle",
    "Diagnose",
    "Diagnosis",
    "DuplicateTask",
    "Ended",
    "FlowError",
    "FlowFailed",
    "Graph",
    "GraphError",
    "Observer",
    "Outcome",
    "Progress",
    "Report",
    "Reporter",
    "Result",
    "Retry",
    "Saver",
    "Settings",
    "Skip",
    "State",
    "StateNotSaved",
    "Task",
    "TaskFailed",
    "UnknownDependency",
    "Write",
    "run",
]
