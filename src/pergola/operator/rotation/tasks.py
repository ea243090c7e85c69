"""The tasks of rotations in the flow that reconciles a Garden (spec 20 §12.2)."""

from pergola.api.objects import Key
from pergola.flow import Graph
from pergola.operator.rotation.access_tokens import add_renewal_task
from pergola.operator.rotation.encryption.tasks import add_encryption_tasks
from pergola.operator.rotation.root_authorities import add_publication_task
from pergola.operator.rotation.seeds.tasks import add_seed_tasks
from pergola.operator.run.run import Run


def add_rotation_tasks(graph: Graph, run: Run, garden: Key) -> None:
    """Add the tasks; each is skipped unless a rotation or a change of encryption needs it."""
    add_renewal_task(graph, run)
    add_seed_tasks(graph, run, garden)
    add_publication_task(graph, run)
    add_encryption_tasks(graph, run, garden)
