"""Why machines of a Shoot are as they are: from a Worker down to what the cloud said.

worker, deployment, machine   an explainer for each kind
observed                      reads of a namespace, and where a machine belongs
controller                    whether machine-controller-manager runs
words                         what the cloud said, its class, and what to do
"""

from typing import Final

from pergola.why.explainer import Explainer
from pergola.why.workers.deployment import MACHINE_DEPLOYMENTS
from pergola.why.workers.machine import MACHINES
from pergola.why.workers.worker import WORKER_RESOURCES

WORKERS: Final[tuple[Explainer, ...]] = (WORKER_RESOURCES, MACHINE_DEPLOYMENTS, MACHINES)
