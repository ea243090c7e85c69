"""The systemd unit of the kubelet (spec 31 §8).

Nodes restart the kubelet when a byte of its unit differs, so the unit is written anew in the form
of the original: sections in their order with a blank line between, continuation lines kept.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws.control_plane.webhooks.edits import with_flag

CONFIG_PATH: Final = "/opt/gardener/ecr-credential-provider-config.json"
BINARIES: Final = "/opt/bin/"
_SERVICE: Final = "Service"
_BREAKS: Final = re.compile(r"[\\\t\n\f\r ]+")
_JOINT: Final = " \\\n    "
_COMMENTS: Final = "#;"


class Option(NamedTuple):
    """One line of a unit, with its continuation lines."""

    section: str
    name: str
    value: str


_SET_HOST_NAME: Final = Option(
    _SERVICE, "ExecStartPre", "/bin/sh -c 'hostnamectl set-hostname $(hostname -f)'"
)
"""AWS names nodes after their full host name."""


class UnitError(ExtensionError):
    """A text that is not a unit of systemd."""


def adapt_unit(text: str, *, ecr: bool) -> str:
    """Return the unit of a kubelet whose cloud has a controller manager of its own.

    Args:
        ecr: whether it gets credentials for AWS's container registry.

    Raises:
        UnitError: the text is not a unit.
    """
    options = list(read_unit(text))
    for index, option in enumerate(options):
        if option[:2] == (_SERVICE, "ExecStart") and option.value:
            options[index] = option._replace(value=_with_flags(option.value, ecr=ecr))
            break
    if _SET_HOST_NAME not in options:
        options.append(_SET_HOST_NAME)
    return write_unit(options)


def _with_flags(command: str, *, ecr: bool) -> str:
    words = [word for word in _BREAKS.split(command) if word]
    words = with_flag(words, "cloud-provider", "external")
    if ecr:
        words = with_flag(words, "image-credential-provider-config", CONFIG_PATH)
        words = with_flag(words, "image-credential-provider-bin-dir", BINARIES)
    return f"{words[0]} {_JOINT.join(words[1:])}"


def read_unit(text: str) -> Iterator[Option]:
    """Yield the options of a unit; comments are skipped.

    Raises:
        UnitError: the text is not a unit.
    """
    at, section = _Reader(text), ""
    while char := at.next():
        if char == "[":
            section = at.section()
        elif char in _COMMENTS:
            at.skip_comment()
        elif section and not char.isspace():
            yield at.option(section)


def write_unit(options: Sequence[Option]) -> str:
    """Return the text of a unit, its options grouped by section."""
    sections = dict.fromkeys(option.section for option in options)
    return "\n".join(
        "".join(
            [
                f"[{section}]\n",
                *(f"{each.name}={each.value}\n" for each in options if each.section == section),
            ]
        )
        for section in sections
    )


class _Reader:
    """A position in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> str:
        """Return the next character; empty at the end."""
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return char

    def section(self) -> str:
        """Return the name of a section, whose bracket was read."""
        end = self._text.find("]", self._at)
        if end < 0:
            raise UnitError("the unit of the kubelet has a section without a closing bracket")
        name = self._text[self._at : end]
        self._at = end + 1
        if self._line().strip():
            raise UnitError(f"the unit of the kubelet has more than [{name[:50]}] in one line")
        return name

    def skip_comment(self) -> None:
        """Skip the rest of a comment, and the lines that it continues on."""
        while self._line().removesuffix(" ").endswith("\\"):
            pass

    def option(self, section: str) -> Option:
        """Return the option whose first character was read."""
        line_end = self._text.find("\n", self._at)
        equals = self._text.find("=", self._at - 1)
        if equals < 0 or -1 < line_end < equals:
            raise UnitError("the unit of the kubelet has a line without =")
        name = self._text[self._at - 1 : equals].strip()
        self._at = equals + 1
        return Option(section, name, self._value())

    def _value(self) -> str:
        value = ""
        while (line := self._line()).strip():
            value += line
            if not line.endswith("\\"):
                break
            value += "\n"
        stripped = value.strip()
        if value.endswith("\n"):
            return f"{stripped}\n"
        # A backslash before blanks does not continue the line; without the blanks it would.
        return f"{stripped} " if stripped.endswith("\\") else stripped

    def _line(self) -> str:
        """Return the rest of the line; afterwards the position is behind its end."""
        end = self._text.find("\n", self._at)
        line = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) + 1 if end < 0 else end + 1
        return line
