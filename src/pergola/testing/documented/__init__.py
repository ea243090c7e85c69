"""The code blocks of the documentation: read, checked and run by tests as they are written."""

from pergola.testing.documented.pages import PAGES, ROOT, Block, blocks, commands, pages
from pergola.testing.documented.scripts import Command, commands_of
from pergola.testing.documented.shell import Shell

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
