"""Split the shell scripts on pages into the commands that they call."""

import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

_HERE_DOCUMENT: Final = re.compile(r"<<'?(\w+)'?(.*\n)(?s:(.*?))^\1$", flags=re.MULTILINE)
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
_COMMENT: Final = re.compile(r"(^|\s)#.*")
_SEPARATORS: Final = frozenset({";", "&&", "||", "|", "&", "(", ")", "()", "{", "}", ";;"})
_KEYWORDS: Final = frozenset({"do", "done", "sudo"})
_BUILTINS: Final = frozenset({"export", "for"})
_FUNCTION: Final = re.compile(r"^(\w+)\(\)", flags=re.MULTILINE)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*")


class Command(NamedTuple):
    """A call of a program.

    Attributes:
        program: Its name, without the folder.
        arguments: Its arguments, without redirections.
    """

    program: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as typed."""
        return shlex.join((self.program, *self.arguments))


def commands_of(script: str) -> Iterator[Command]:
    """Yield the commands of a script, those of substitutions first."""
    functions = {match[1] for match in _FUNCTION.finditer(script)}
    for line in _HERE_DOCUMENT.sub(r"\2", script).replace("\\\n", " ").splitlines():
        for command in _of_line(_COMMENT.sub("", line)):
            if command.program not in functions | _BUILTINS:
                yield command


def documents_of(script: str) -> list[str]:
    """Return the here-documents of a script."""
    return [match[3] for match in _HERE_DOCUMENT.finditer(script)]


def _of_line(line: str) -> Iterator[Command]:
    while match := _SUBSTITUTION.search(line):
        yield from _of_line(match[1])
        line = f"{line[: match.start()]}SUBSTITUTED{line[match.end() :]}"
    words: list[str] = []
    for word in (*_lexed(line), ";"):
        if word not in _SEPARATORS:
            words.append(word)
            continue
        if words := _called(words):
            program = words[0].rpartition("/")[2]
            yield Command(program, tuple(words[1:]))
        words = []


def _lexed(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _called(words: list[str]) -> list[str]:
    """Return a command without keywords, assignments and redirections."""
    found: list[str] = []
    skipped = False
    for word in words:
        if skipped or (not found and (word in _KEYWORDS or _ASSIGNMENT.fullmatch(word))):
            skipped = False
        elif word in {">", ">>", "<"}:
            skipped = True
        else:
            found.append(word)
    return found
