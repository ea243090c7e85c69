"""The interface of every credential: the inputs and the generation of its data.

`fingerprint` covers all properties whose change requires new data at once; it never contains secret
values. Credentials that a running cluster depends on (authorities, keys) change only by rotation,
so their fingerprints omit choices that a later release may change, such as the key type. `generate`
may take seconds of CPU time (RSA), so the manager calls it outside the event loop.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import orjson

from pergola.api.objects import JsonObject
from pergola.pki import Authority

SecretData: TypeAlias = dict[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of a generation.

    Attributes:
        object_name: The name of the Secret; also the common name of an authority, so that an old
            and a new one never share a subject.
        lifetime: For authorities and certificates.
        signer: For certificates.
        random_bytes: Returns the given number of unpredictable bytes.
    """

    object_name: str
    now: datetime
    lifetime: timedelta
    random_bytes: Callable[[int], bytes]
    signer: Authority | None = None


class SecretConfig(ABC):
    """A credential, under a name that is unique for a manager identity.

    Attributes:
        name: The config name, stored in the label `name`.
        is_signed: Whether an authority signs it.
        for_server: Whether clients must trust the signer before they can use it.
        is_replaceable: Whether to replace data that cannot be adopted with new data.
        bundle_key: The data key in the bundle; empty for credentials without a bundle.
    """

    __slots__ = ()
    name: str
    is_signed = False
    for_server = False
    is_replaceable = False
    bundle_key = ""

    @abstractmethod
    def fingerprint(self) -> JsonObject:
        """Return all properties whose change requires new data."""

    @abstractmethod
    def generate(self, inputs: Inputs) -> SecretData:
        """Return new data."""

    def problem_with(self, data: Mapping[str, bytes], signer: Authority | None) -> str:
        """Return why existing data cannot serve as this credential; empty if it can."""
        return ""

    def certificate(self, data: Mapping[str, bytes]) -> bytes | None:
        """Return the certificate in the data, PEM; None if the data is not a certificate."""
        return None

    def bundled(self, data: Mapping[str, bytes]) -> bytes:
        """Return the part of one Secret that goes into the bundle."""
        raise NotImplementedError


def missing_keys(data: Mapping[str, bytes], *keys: str) -> str:
    """Return a sentence about missing or empty keys; empty if there are none."""
    missing = [key for key in keys if not data.get(key)]
    return f"it lacks {', '.join(missing)}" if missing else ""


def canonical(fingerprint: JsonObject) -> bytes:
    """Encode a fingerprint so that equal ones have equal bytes."""
    return orjson.dumps(fingerprint, option=orjson.OPT_SORT_KEYS)
