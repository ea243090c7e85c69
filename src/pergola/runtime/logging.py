"""Logging: one event with fields per line, as JSON for pipelines or as text for people.

JSON lines have the keys `level`, `ts`, `logger` and `msg`, then the fields (spec 10 §13.3). Fields
whose names suggest a secret are masked, at any depth. Exceptions become one `error` sentence; a
stack, if useful, goes into `stacktrace` only.

Logging never raises. Lines that cannot be written are counted in `pergola_log_lines_lost_total`,
and a line with their number precedes the next one that can be written.
"""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from pergola.api.visible_text import visible
from pergola.runtime.clock import Clock, SystemClock

Level = Literal["debug", "info", "error"]
Format = Literal["json", "text"]

MASKED: Final = "[masked]"
_SECRET_NAMES: Final = frozenset({"data", "stringdata", "token", "password", "authorization"})
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "error": logging.ERROR}
# From the names of structlog's methods to the levels in the lines.
_LEVEL_NAMES: Final = {"warning": "warn", "exception": "error", "critical": "error"}
_FIRST_KEYS: Final = ("level", "ts", "logger", "msg")


def configure(
    level: Level = "info",
    format: Format = "json",  # noqa: A002 - as the configuration calls it
    stream: TextIO = sys.stderr,
    clock: Clock | None = None,
) -> None:
    """Send all log lines of this process to `stream`, including those of the standard library.

    Args:
        level: the minimum level; warnings count as info.
        format: one JSON object per line, or text.
        stream: the destination.
        clock: for timestamps.
    """
    clock = clock or SystemClock()
    sink = _Sink(stream, _json if format == "json" else _text, clock)
    _configure_loggers(_LEVELS[level], sink, clock, cached=True)
    root = logging.getLogger()
    root.handlers = [_Forward()]
    root.setLevel(_LEVELS[level])


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger whose lines contain `logger: <name>`.

    Until `configure` is called, it writes text to stderr, because stdout belongs to the results of
    commands. The level is that of the standard library's logger `pergola`, or info if it has none.
    A program that configured structlog itself keeps its configuration.
    """
    if not structlog.is_configured():
        clock = SystemClock()
        level = logging.getLogger("pergola").level or logging.INFO
        _configure_loggers(level, _Sink(sys.stderr, _text, clock), clock, cached=False)
    return cast("FilteringBoundLogger", structlog.get_logger(logger_name=name))


def _configure_loggers(level: int, sink: "_Sink", clock: Clock, *, cached: bool) -> None:
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _stamp(clock), _hand_over],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_names: sink,
        # A logger that is cached when it is first used ignores all later configurations.
        cache_logger_on_first_use=cached,
    )


def lines_lost() -> int:
    """Return the number of lines that this process could not write."""
    return _Sink.lost


class _Sink:
    """The end of every log call: renders the event and writes the line without ever raising.

    Attributes:
        lost: the number of lines that could not be written, over all streams of the process.
    """

    lost = 0

    def __init__(self, stream: TextIO, render: Callable[[EventDict], str], clock: Clock) -> None:
        self._stream = stream
        self._render = render
        self._clock = clock
        self._unreported = 0
        self._lock = threading.Lock()

    def log(self, event: EventDict) -> None:
        """Write one line."""
        line = self._rendered(event)
        with self._lock:
            try:
                self._stream.write(f"{self._report()}{line}\n")
                self._stream.flush()
            except Exception:  # a full disk or a closed pipe costs only the line
                self._unreported += 1
                _Sink.lost += 1
            else:
                self._unreported = 0

    debug = info = warning = error = critical = exception = fatal = msg = log

    def _rendered(self, event: EventDict) -> str:
        first = {key: str(event.get(key, "")) for key in _FIRST_KEYS}
        try:
            return self._render(_mask_secrets(_render_exception(event)))
        except Exception as error:  # a value that cannot be rendered
            return self._render({**first, "unprintable": type(error).__name__})

    def _report(self) -> str:
        """Return a line that reports the lines lost before this one; empty if none were."""
        if not self._unreported:
            return ""
        event = _stamped("error", "logging", "log lines lost", self._clock)
        return self._render({**event, "count": self._unreported}) + "\n"


def _hand_over(
    _logger: WrappedLogger, _method: str, event: EventDict
) -> tuple[tuple[EventDict], dict[str, Any]]:
    return (event,), {}


class _Forward(logging.Handler):
    """Converts records of the standard library into structlog events."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields: dict[str, Any] = {"exc_info": record.exc_info} if record.exc_info else {}
            level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
            get_logger(record.name).log(level, record.getMessage(), **fields)
        except Exception:
            # A malformed record must not raise in the code that logged it.
            self.handleError(record)


def _stamp(clock: Clock) -> Processor:
    def stamp(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Put the fields of every line first."""
        level = _LEVEL_NAMES.get(method, method)
        name, text = event.pop("logger_name", ""), event.pop("event", "")
        return {**_stamped(level, name, text, clock), **event}

    return stamp


def _stamped(level: str, logger: str, text: object, clock: Clock) -> EventDict:
    now = clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"level": level, "ts": now, "logger": logger, "msg": text}


def _render_exception(event: EventDict) -> EventDict:
    error = _exception(event.pop("exc_info", None))
    if error is not None:
        event.setdefault("error", describe(error))
        event["stacktrace"] = "".join(traceback.format_exception(error))
    return event


def _exception(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return cast("BaseException | None", exc_info[1])
    return sys.exc_info()[1] if exc_info else None


def describe(error: BaseException) -> str:
    """Return an exception as a sentence; for a group, the sentences of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(describe, error.exceptions))
    return str(error) or type(error).__name__


def _mask_secrets(event: EventDict) -> EventDict:
    for key, value in event.items():
        if key.lower() in _SECRET_NAMES:
            event[key] = MASKED
        elif isinstance(value, dict | list):
            event[key] = _masked(value)
    return event


def _masked(value: object) -> object:
    """Return a copy with possible secrets masked."""
    if isinstance(value, dict):
        return {
            key: MASKED if str(key).lower() in _SECRET_NAMES else _masked(part)
            for key, part in value.items()
        }
    return [_masked(part) for part in value] if isinstance(value, list) else value


def _text(event: EventDict) -> str:
    stack = event.pop("stacktrace", "").rstrip()
    level, ts, logger, msg = (str(event.pop(key)) for key in _FIRST_KEYS)
    words = [ts, level.upper().ljust(5), *filter(None, (logger,)), msg, *_fields(event)]
    return visible("\n".join(filter(None, (" ".join(words), stack))))


def _fields(event: Mapping[str, object]) -> list[str]:
    return [f"{key}={_word(value)}" for key, value in event.items()]


def _word(value: object) -> str:
    if isinstance(value, str) and value and not set(value) & set(' "=\n\r\t'):
        return value
    return _json(value)


def _json(value: object) -> str:
    try:
        text: bytes = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # large integers, lone surrogates
        return json.dumps(value, default=_plain, separators=(",", ":"))
    return text.decode()


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    # Bytes are usually the content of Secrets.
    return MASKED if isinstance(value, bytes | bytearray | memoryview) else str(value)
