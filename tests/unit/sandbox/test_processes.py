import os
import subprocess
import sys

from pergola.sandbox.processes import ProcessId

WAIT = [sys.executable, "-c", "input()"]


def test_a_process_keeps_its_identity_while_it_lives() -> None:
    own = ProcessId.of(os.getpid())

    assert own is not None
    assert own.alive


def test_a_later_process_with_the_same_pid_is_not_killed() -> None:
    with subprocess.Popen(WAIT, stdin=subprocess.PIPE) as process:
        now = ProcessId.of(process.pid)
        assert now is not None
        earlier = now._replace(started=now.started - 1)

        earlier.kill()

        assert not earlier.alive
        assert now.alive
        now.kill()
        assert process.wait() == -9


def test_a_zombie_and_an_unused_pid_are_not_processes() -> None:
    with subprocess.Popen(WAIT, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessId.of(process.pid) is None
    assert ProcessId.of(2**22 + 1) is None
