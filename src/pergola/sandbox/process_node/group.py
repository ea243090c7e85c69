"""The processes of one workload: one for each container whose program the node has."""

from dataclasses import dataclass

from pergola.sandbox.process_node import volumes
from pergola.sandbox.process_node.folders import Folders
from pergola.sandbox.process_node.process import Exit, Process


@dataclass(frozen=True)
class Group:
    """Processes that share an address and live together, at least one."""

    processes: tuple[Process, ...]
    folders: Folders

    @property
    def uid(self) -> str:
        """The identity of the pod that they were started for."""
        return self.processes[0].uid

    @property
    def restarts(self) -> int:
        """The number of times that any of them exited by itself."""
        return sum(process.restarts for process in self.processes)

    def last_exit(self) -> Exit | None:
        """Return how the first of those that exited by themselves did, or None if none has."""
        return next(filter(None, (process.last_exit() for process in self.processes)), None)

    def write_files(self, find: volumes.Find) -> None:
        """Write the files that the containers mount.

        Raises:
            MissingFile: an object that the pod mounts does not exist yet.
        """
        for process in self.processes:
            process.write_files(find)

    async def start(self) -> None:
        """Start them the first time."""
        for process in self.processes:
            await process.start()

    async def is_ready(self) -> bool:
        """Return whether all run and their readiness probes succeed."""
        return all([await process.is_ready() for process in self.processes])

    async def stop(self) -> None:
        """Stop them and remove their files, but not those of claims, nor their logs."""
        for process in self.processes:
            await process.stop()
        self.folders.remove()
