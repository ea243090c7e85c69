"""A program that forks operators which die by SIGKILL at the boundary of a task.

It reads one JSON line per operator from its input, and writes JSON lines to its output: `pid` when
an operator starts, `failed` for a task that failed, `died_after` at the boundary, and `status` when
the operator is dead. The forks spare each life the time that imports take. Nothing of the operator
runs after the kill: no cleanup, no last report, no closing of connections.
"""

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.api.operator_config import configuration_from
from pergola.kube.kubeconfig import ClusterConfig
from pergola.operator.app import serve
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.logging import configure
from pergola.runtime.process import application
from pergola.sandbox.processes import die_with

_STDOUT: Final = 1


@dataclass(frozen=True, slots=True)
class Life:
    """One life of an operator.

    Attributes:
        config: its configuration file.
        environment: its variables.
        proxy: the URL of the proxy through which it reaches the virtual cluster.
        log: receives its log lines.
        known: the tasks, as `<flow>/<task>`, whose end does not kill it; None: it lives on.
        fatal: the name of a task whose end kills it nevertheless.
        spared: how many other tasks may end before one kills it.
    """

    config: JsonObject
    environment: dict[str, str]
    proxy: str
    log: str
    known: tuple[str, ...] | None
    fatal: str = ""
    spared: int = 0

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how an API server is reached that is a Service of the site."""
        return replace(config, proxy_url=self.proxy)


class Executioner:
    """The log of an operator, which kills it when a task ends that is not known yet.

    The line is written by the flow before any task starts that depends on the one that ended.
    """

    def __init__(self, life: Life) -> None:
        self._known = None if life.known is None else set(life.known)
        self._fatal = life.fatal
        self._spared = life.spared
        self._file = Path(life.log).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115

    def write(self, text: str) -> int:
        """Write log lines; do not return if one of them is about the end of a task."""
        written = self._file.write(text)
        for line in text.splitlines():
            event = orjson.loads(line)
            if event["msg"] == "task ended":
                self._ended(event["flow"], event["task"], event["outcome"])
            elif event["msg"] == "task failed":
                _say(failed=f"{event['flow']}/{event['task']}: {event['error']}")
        return written

    def flush(self) -> None:
        """Do nothing: the file is flushed with each line."""

    def _ended(self, flow: str, task: str, outcome: str) -> None:
        if outcome != "done":
            return
        boundary = f"{flow}/{task}"
        if task == self._fatal:
            _die(boundary)
        if self._known is None or boundary in self._known:
            return
        self._known.add(boundary)
        if self._spared:
            self._spared -= 1
            _say(spared_at=boundary)
        else:
            _die(boundary)


def main() -> None:
    """Fork one operator after the other, until the input ends."""
    die_with(os.getppid())
    for line in sys.stdin.buffer:
        life = Life(**orjson.loads(line))
        own = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with(own)
            _live(life)
        _say(pid=pid)
        _, status, usage = os.wait4(pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        _say(status=os.waitstatus_to_exitcode(status), cpu_seconds=seconds)


def _live(life: Life) -> None:
    """Run an operator in this process, which ends with it."""
    configure("debug", "json", Executioner(life))  # type: ignore[arg-type]
    config = configuration_from(life.config).config
    code = 1
    try:
        application.run(lambda: serve(config, garden_webhooks, life.environment, reach=life.reach))
        code = 0
    finally:
        os._exit(code)


def _die(boundary: str) -> None:
    _say(died_after=boundary)
    os.kill(os.getpid(), signal.SIGKILL)


def _say(**fields: object) -> None:
    os.write(_STDOUT, orjson.dumps(fields) + b"\n")


if __name__ == "__main__":
    main()
