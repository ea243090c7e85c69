"""The program in images that lack their real program: it answers probes."""

import http.client
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pergola.sandbox import binaries
from pergola.sandbox.module import PROBE_ANSWERS
from pergola.testing.shared import require_images

pytestmark = pytest.mark.node


@pytest.fixture(autouse=True)
def built() -> None:
    require_images("plutono")


@contextmanager
def answering(*args: str, ports: str = "") -> Iterator[list[int]]:
    """Run the program, and yield the ports that it reports."""
    program = binaries.find((PROBE_ANSWERS,))[PROBE_ANSWERS]
    expected = len(args) + bool(ports)
    with subprocess.Popen(
        [program, *args], env={"PERGOLA_PORTS": ports}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # report
        lines = [process.stderr.readline() for _ in range(expected)]
        yield [int(line.rpartition(":")[2]) for line in lines]
        process.terminate()
        assert process.wait(60) == 0


def test_a_port_answers_both_http_and_https() -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with answering(ports="0") as (port,):
        plain = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        secure = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=trusting)
        for connection in (plain, secure):
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()


@pytest.mark.parametrize(
    "flag", ["--port=0", "--health-probe-bind-address=:0", "--web.listen-address=127.0.0.1:0"]
)
def test_ports_in_flags_are_answered(flag: str) -> None:
    with answering(flag) as (port,):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()


def test_an_init_container_exits_at_once() -> None:
    program = binaries.find((PROBE_ANSWERS,))[PROBE_ANSWERS]
    line = [str(program), "-c", "/vali-init.sh || true"]
    done = subprocess.run(line, env={"PERGOLA_EXITS": "true"}, check=False, timeout=60)

    assert done.returncode == 0
