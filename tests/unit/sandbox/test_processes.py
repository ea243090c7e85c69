import os
import subprocess
import sys
import time
from pathlib import Path

from pergola.sandbox.processes import ProcessId

WAIT = [sys.executable, "-c", "input()"]
MAIN_THREAD_ENDS = """
import ctypes, threading
threading.Thread(target=input).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_keeps_its_identity_while_alive() -> None:
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


def test_a_process_is_alive_until_its_last_thread_ends() -> None:
    command = [sys.executable, "-c", MAIN_THREAD_ENDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        found = ProcessId.of(process.pid)
        assert found is not None

        found.kill()

        process.wait()
        assert not found.alive
