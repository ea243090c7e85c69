"""Removes the key with which nodes can be entered (spec 30 §10.4)."""

from typing import Final

from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import forget, is_ours, note, remove
from pergola.providers.aws.step import Step, Work

KEY_PAIR: Final = "delete key pair"


def steps() -> list[Step]:
    """The step of the key pair."""
    return [Step(name=KEY_PAIR, plan=_plan, ensure=_ensure)]


def _plan(work: Work) -> Note:
    return note(_names(work))


async def _ensure(work: Work) -> None:
    for name in _names(work):
        await remove(work, "DeleteKeyPair", KeyName=name)
        work.snapshot.key_pair = None
    forget(work, keys.KEY_PAIR, keys.KEY_PAIR_FINGERPRINT, keys.KEY_PAIR_SPEC_FINGERPRINT)


def _names(work: Work) -> list[str]:
    pair, known = work.snapshot.key_pair, work.state.get(keys.KEY_PAIR)
    if pair is not None and (known or is_ours(work, pair)):
        return [str(pair["KeyName"])]
    return [known] if known else []
