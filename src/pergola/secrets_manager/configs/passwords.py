"""Passwords and tokens."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import bcrypt

from pergola.api.objects import JsonObject
from pergola.pki import Authority
from pergola.secrets_manager.configs.config import Inputs, SecretConfig, SecretData, missing_keys

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class BasicAuth(SecretConfig):
    """A user name and a random password, including an htpasswd line.

    Attributes:
        length: Of the password, in characters; bcrypt uses at most 72.
    """

    name: str
    username: str = "admin"
    length: int = 32

    is_replaceable = True

    def fingerprint(self) -> JsonObject:
        """Return the user and the length of the password."""
        return {
            "kind": "BasicAuth",
            "name": self.name,
            "username": self.username,
            "length": self.length,
        }

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return which key is missing, or that it is another user's."""
        if missing := missing_keys(data, "username", "password", "auth"):
            return missing
        return "" if data["username"] == self.username.encode() else "it is for another user"

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `username`, `password` and `auth`."""
        password = random_text(self.length, inputs.random_bytes).encode()
        user = self.username.encode()
        hashed = bcrypt.hashpw(password, bcrypt.gensalt())
        return {"username": user, "password": password, "auth": user + b":" + hashed}


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A user who authenticates with a random token."""

    username: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StaticTokens(SecretConfig):
    """The static token file of an API server."""

    name: str
    users: tuple[StaticToken, ...]

    is_replaceable = True

    def fingerprint(self) -> JsonObject:
        """Return the users and their groups."""
        users = [[user.username, *user.groups] for user in self.users]
        return {"kind": "StaticTokens", "name": self.name, "users": users}

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return that the file is missing, or has other users or groups."""
        if missing := missing_keys(data, "static_tokens.csv"):
            return missing
        found = _users_in(data["static_tokens.csv"])
        desired = {user.username: {*user.groups} for user in self.users}
        return "" if found == desired else "it is for other users or groups"

    def generate(self, inputs: Inputs) -> SecretData:
        """Return `static_tokens.csv`: token, user name, user id, groups."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for user in self.users:
            token = random_text(128, inputs.random_bytes)
            row = [token, user.username, user.username]
            writer.writerow([*row, ",".join(user.groups)] if user.groups else row)
        return {"static_tokens.csv": text.getvalue().encode()}


def _users_in(text: bytes) -> dict[str, set[str]]:
    """Return the users in a token file, with their groups; none if it cannot be read."""
    try:
        rows = list(csv.reader(io.StringIO(text.decode(errors="replace"))))
    except csv.Error:
        return {}
    return {
        row[1]: {group for group in ",".join(row[3:]).split(",") if group}
        for row in rows
        if len(row) > 1
    }


def random_text(length: int, random_bytes: Callable[[int], bytes]) -> str:
    """Return random letters and digits, uniformly distributed."""
    limit = 256 - 256 % len(_ALPHABET)
    text: list[str] = []
    while len(text) < length:
        text += [_ALPHABET[byte % len(_ALPHABET)] for byte in random_bytes(length) if byte < limit]
    return "".join(text[:length])
