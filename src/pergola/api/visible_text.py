r"""Texts of objects for terminals and logs: control characters are shown, and not sent.

An administrator's terminal prints texts that others wrote into objects. An escape sequence in one
could clear the screen, write a false status, or fill the clipboard.
"""

import re
from typing import Final

_CONTROLS: Final = re.compile(
    # ASCII except tab and line feed, C1, marks of direction, separators, lone surrogates
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return a text with control characters as `\x1b` and `\u009b`, which is right in JSON, too.

    Line feeds and tabs stay; JSON contains no other control characters of ASCII.
    """
    return _CONTROLS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"
