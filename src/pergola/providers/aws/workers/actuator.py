"""The actuator of Workers in AWS (spec 31 §1)."""

from collections.abc import Iterator, Sequence

from pergola.api.field_errors import Cause
from pergola.extension_api.errors import Code
from pergola.extensions.workers import Machines, Pool, WorkerPlan, WorkerProvider
from pergola.providers.aws.codes import codes_of_text
from pergola.providers.aws.worker_config import WORKER_CONFIG, WorkerConfig
from pergola.providers.aws.workers.hash_inputs import hashes_written
from pergola.providers.aws.workers.machines import machines, problems


class AwsWorker(WorkerProvider[WorkerConfig]):
    """Creates, replaces and deletes machines in AWS by machine-controller-manager."""

    type = "aws"
    name = "provider-aws"
    registered_as = "pergola-aws"
    config = WorkerConfig
    config_gvk = WORKER_CONFIG
    provider = "AWS"

    def check(self, plan: WorkerPlan[WorkerConfig]) -> Iterator[Cause]:
        """Yield the first problem of each pool.

        Raises:
            ExtensionError: the CloudProfile's config or the Worker's status is malformed.
        """
        return problems(plan)

    def hashes_written(self, pool: Pool[WorkerConfig]) -> bool:
        """Return whether the hash of a pool depends on the bytes of its `providerConfig`."""
        return hashes_written(pool)

    def codes_of(self, text: str) -> Sequence[Code]:
        """Return the classes of an error that AWS reported about a machine."""
        return codes_of_text(text)

    def render(self, plan: WorkerPlan[WorkerConfig]) -> Machines:
        """Return the machines of a plan.

        Raises:
            ExtensionError: something that the machines need is missing or malformed.
        """
        return machines(plan)
