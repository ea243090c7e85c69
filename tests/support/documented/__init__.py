"""The code blocks of the documentation: read, checked and run by tests as they are written."""

from tests.support.documented.pages import PAGES, ROOT, Block, blocks, commands, pages
from tests.support.documented.scripts import Command, commands_of
from tests.support.documented.shell import Shell

__all__ = [
    "PAGES",
    "ROOT",
    "Block",
    "Command",
    "Shell",
    "blocks",
    "commands",
    "commands_of",
    "pages",
]
