import errno
import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from pergola.runtime.clock import FakeClock
from pergola.runtime.logging import MASKED, Format, Level, configure, get_logger, lines_lost

NOW = datetime(2026, 11, 21, 7, 26, 38, 123456, tzinfo=UTC)
Logs = Callable[..., io.StringIO]


@contextmanager
def restored() -> Iterator[None]:
    """Restore the configuration of logging after the test."""
    root = logging.getLogger()
    handlers, level, settings = root.handlers, root.level, structlog.get_config()
    try:
        yield
    finally:
        structlog.configure(**settings)
        root.handlers = handlers
        root.setLevel(level)


@pytest.fixture
def logs() -> Iterator[Logs]:
    """Configure logging into a buffer, and restore the former configuration afterwards."""

    def logs(level: Level = "debug", format: Format = "json") -> io.StringIO:  # noqa: A002 - as there
        stream = io.StringIO()
        configure(level, format, stream, FakeClock(NOW))
        return stream

    with restored():
        yield logs


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_the_standard_keys_and_then_the_fields(logs: Logs) -> None:
    stream = logs()
    get_logger("managedresource").info("object created", object="a/b", count=2)
    assert stream.getvalue() == (
        '{"level":"info","ts":"2026-11-21T07:26:38.123Z","logger":"managedresource",'
        '"msg":"object created","object":"a/b","count":2}\n'
    )


def test_a_text_line_is_readable(logs: Logs) -> None:
    stream = logs(format="text")
    get_logger("cache").error("watch failed", error="not now", kind="v1/Pod", none="", n=1)
    assert stream.getvalue() == (
        "2026-11-21T07:26:38.123Z ERROR cache watch failed"
        ' error="not now" kind=v1/Pod none="" n=1\n'
    )


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["debug", "info", "warn", "error"]),
        ("info", ["info", "warn", "error"]),
        ("error", ["error"]),
    ],
)
@pytest.mark.parametrize("source", [get_logger, logging.getLogger])
def test_lines_below_the_level_are_dropped(
    logs: Logs, level: Level, seen: list[str], source: Callable[[str], Any]
) -> None:
    stream = logs(level)
    log = source("x")
    for method in (log.debug, log.info, log.warning, log.error):
        method("hello")
    assert [line["level"] for line in lines(stream)] == seen


def test_a_logger_made_before_the_configuration_follows_it(logs: Logs) -> None:
    log = get_logger("early")
    stream = logs()
    log.info("hello")
    assert [line["logger"] for line in lines(stream)] == ["early"]


def test_log_records_of_libraries_have_our_format(logs: Logs) -> None:
    stream = logs()
    logging.getLogger("aiohttp.server").log(35, "%s of %d", "one", 2)
    assert lines(stream) == [
        {
            "level": "warn",
            "ts": "2026-11-21T07:26:38.123Z",
            "logger": "aiohttp.server",
            "msg": "one of 2",
        }
    ]


def test_a_malformed_record_of_a_library_does_not_raise(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    logs()
    logging.getLogger("x").info("%d", "no number")
    assert "Logging error" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["json", "text"])
def test_an_exception_is_one_sentence_and_a_stack(logs: Logs, format: Format) -> None:  # noqa: A002
    stream = logs(format=format)
    try:
        raise ValueError("broken")
    except ValueError as error:
        get_logger("x").error("reconcile failed", exc_info=error)
    text = stream.getvalue()
    if format == "json":
        [line] = lines(stream)
        assert line["error"] == "broken"
        assert line["stacktrace"].startswith("Traceback")
        assert line["stacktrace"].rstrip().endswith("ValueError: broken")
    else:
        assert text.splitlines()[0].endswith("error=broken")
        assert text.splitlines()[1].startswith("Traceback")
    assert "exc_info" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_the_current_exception_can_be_logged(logs: Logs) -> None:
    stream = logs()
    try:
        raise KeyError
    except KeyError:
        get_logger("x").exception("failed")
        logging.getLogger("y").exception("failed too")
    assert [line["error"] for line in lines(stream)] == ["KeyError", "KeyError"]
    assert [line["level"] for line in lines(stream)] == ["error", "error"]


def test_a_stack_is_only_there_with_an_exception(logs: Logs) -> None:
    stream = logs()
    assert sys.exc_info()[1] is None
    get_logger("x").error("failed", exc_info=True)
    assert "stacktrace" not in lines(stream)[0]


def test_an_explicit_error_field_is_kept(logs: Logs) -> None:
    stream = logs()
    get_logger("x").error("failed", error="in short", exc_info=ValueError("at length"))
    assert lines(stream)[0]["error"] == "in short"


def test_the_messages_of_all_exceptions_in_a_group_are_logged(logs: Logs) -> None:
    stream = logs()
    group = ExceptionGroup("group", [ValueError("a"), ExceptionGroup("inner", [OSError("b")])])
    get_logger("x").error("failed", exc_info=group)
    assert lines(stream)[0]["error"] == "a; b"


def test_potential_secrets_are_masked_at_any_depth(logs: Logs) -> None:
    stream = logs()
    get_logger("x").info(
        "secret",
        token="hush",
        Password="hush",
        objects=[{"kind": "Secret", "data": {"a": "hush"}, "stringData": {"b": "hush"}}],
        nested={"headers": {"Authorization": "hush"}, "name": "shown"},
        raw=b"hush",
    )
    assert "hush" not in stream.getvalue()
    [line] = lines(stream)
    assert line["objects"] == [{"kind": "Secret", "data": MASKED, "stringData": MASKED}]
    assert line["nested"]["name"] == "shown"


def test_masking_does_not_modify_logged_objects(logs: Logs) -> None:
    logs()
    secret = {"data": {"a": "b"}}
    get_logger("x").info("secret", objects=[secret])
    assert secret == {"data": {"a": "b"}}


def test_bound_fields_of_the_context_are_in_every_line(logs: Logs) -> None:
    stream = logs()
    with structlog.contextvars.bound_contextvars(reconcile_id="r1"):
        get_logger("x").info("one")
    get_logger("x").info("two")
    assert [line.get("reconcile_id") for line in lines(stream)] == ["r1", None]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**70, 2**70),
        ("lone \ud800", "lone \ud800"),
        ({"b", "a"}, ["a", "b"]),
        ({1: "x"}, {"1": "x"}),
        (NOW, "2026-11-21T07:26:38.123456+00:00"),
        (ValueError("x"), "x"),
    ],
)
def test_any_value_can_be_logged(logs: Logs, value: object, shown: object) -> None:
    stream = logs()
    get_logger("x").info("value", value=value)
    assert lines(stream)[0]["value"] == shown


class Broken(io.StringIO):
    """A stream that fails while `error` is set, as a full disk or a closed pipe does."""

    error: Exception | None = None

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "no space left on device"),
        BrokenPipeError(),
        ValueError("I/O operation on closed file"),
    ],
)
def test_a_log_that_cannot_be_written_does_not_raise_and_the_loss_is_counted(
    logs: Logs, error: Exception
) -> None:
    logs()
    stream = Broken()
    configure("debug", "json", stream, FakeClock(NOW))
    before = lines_lost()
    stream.error = error
    get_logger("x").info("one")
    logging.getLogger("y").error("two")
    get_logger("x").error("three", exc_info=ValueError("z"))
    stream.error = None
    get_logger("x").info("four")
    assert lines_lost() == before + 3
    assert [(line["msg"], line.get("count")) for line in lines(stream)] == [
        ("log lines lost", 3),
        ("four", None),
    ]


def test_a_full_device_does_not_end_the_process(logs: Logs) -> None:
    logs()
    before = lines_lost()
    with io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True) as full:
        configure("debug", "json", full, FakeClock(NOW))
        get_logger("x").info("one")
        assert lines_lost() == before + 1


class Unprintable:
    """A value whose text representation fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize("format", ["json", "text"])
def test_an_unprintable_value_drops_the_fields_but_does_not_raise(
    logs: Logs,
    format: Format,  # noqa: A002 - as there
) -> None:
    stream = logs(format=format)
    get_logger("x").info("created", object=Unprintable())
    assert "created" in stream.getvalue()
    assert "RuntimeError" in stream.getvalue()


@given(st.dictionaries(st.text(min_size=1), st.text() | st.binary() | st.integers()))
def test_a_logger_never_raises_whatever_its_fields(fields: dict[str, Any]) -> None:
    stream = io.StringIO()
    with restored():
        configure("debug", "json", stream, FakeClock(NOW))
        get_logger("x").info("event", **{f"_{name}": value for name, value in fields.items()})
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue())["msg"] == "event"


def only_line_on_stderr(code: str) -> str:
    """Return the only line of output of a program, which must be on stderr."""
    ran = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    [line] = ran.stderr.splitlines()
    return line


def test_lines_before_the_configuration_stay_out_of_results() -> None:
    code = (
        "from pergola.runtime import get_logger; "
        "log = get_logger('manager'); log.debug('unseen'); log.info('seen', count=2)"
    )
    line = only_line_on_stderr(code)
    assert "manager" in line
    assert "seen" in line
    assert "count=2" in line


def test_a_logger_follows_a_program_that_configured_structlog_itself() -> None:
    code = (
        "import structlog; from structlog.processors import JSONRenderer; "
        "structlog.configure(processors=[JSONRenderer()]); "
        "from pergola.runtime import get_logger; get_logger('manager').info('seen')"
    )
    ran = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == {"logger_name": "manager", "event": "seen"}


def test_the_level_before_the_configuration_is_that_of_the_standard_library() -> None:
    code = (
        "import logging; logging.getLogger('pergola').setLevel(logging.ERROR); "
        "from pergola.runtime import get_logger; log = get_logger('manager'); "
        "log.info('unseen'); log.warning('unseen'); log.error('seen')"
    )
    line = only_line_on_stderr(code)
    assert "seen" in line
    assert "unseen" not in line
