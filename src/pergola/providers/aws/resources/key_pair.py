"""The SSH key pair of nodes (spec 30 §10.4)."""

import hashlib
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by, tags_of
from pergola.cloud.errors import AlreadyExists
from pergola.extension_api.errors import configuration_problem
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import kinds
from pergola.providers.aws.resources.observation import Observation
from pergola.providers.aws.resources.ours import Ours, anything
from pergola.providers.aws.resources.removal import delete_ours, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import retag, specification
from pergola.providers.aws.state import (
    KEY_PAIR,
    KEY_PAIR_FINGERPRINT,
    KEY_PAIR_SPEC_FINGERPRINT,
)

NAME: Final = "ensure key pair"
_SUFFIX: Final = "ssh-publickey"
DELETE: Final = "delete key pair"
_OURS: Final = Ours(kind=kinds.KEY_PAIR, key=KEY_PAIR, accept=anything)


def steps(desired: Desired) -> list[Step]:
    """Return the step of the key pair, which deletes the pair without a public key."""
    del desired
    return [Step(name=NAME, plan=_plan, ensure=_ensure)]


def spec_fingerprint(public_key: bytes) -> str:
    """Return the hexadecimal MD5 of a spec's public key, to detect a rotation."""
    return hashlib.md5(public_key, usedforsecurity=False).hexdigest()


async def observe_key_pair(seen: Observation) -> None:
    """Read the key pair, by the name in the state, or the cluster's name.

    Raises:
        CloudError: AWS refused.
    """
    name = seen.state.get(KEY_PAIR) or seen.desired.name(_SUFFIX)
    seen.snapshot.key_pair = await _described(seen.aws, name)


async def _described(aws: AwsClient, name: str) -> JsonObject | None:
    by_name = filters_by({"key-name": name})
    pairs = await aws.pages("ec2", "DescribeKeyPairs", "KeyPairs", Filters=by_name)
    return pairs[0] if pairs else None


def _plan(work: Work) -> Note:
    name = _name(work)
    if not work.desired.ssh_public_key:
        if to_delete(work, _OURS):
            return Note(Fate.DELETE, f"{name}: there is no longer a public key")
        return Note(Fate.SKIP, "there is no public key")
    if not _exists(work):
        return Note(Fate.CREATE, f'key pair "{name}"')
    if _is_of_user(work):
        return Note(Fate.KEEP, _taken(work))
    why = _why_replaced(work) or _why_retagged(work)
    return Note(Fate.CHANGE, f"{name}: {why}") if why else Note(Fate.KEEP, name)


async def _ensure(work: Work) -> None:
    if not work.desired.ssh_public_key:
        await _remove(work)
        return
    pair = work.snapshot.key_pair
    if _is_of_user(work):
        raise configuration_problem(_taken(work))
    if pair is None or _why_replaced(work):
        await _replace(work)
    else:
        work.state.set(KEY_PAIR_FINGERPRINT, str(pair["KeyFingerprint"]))
        work.state.created(KEY_PAIR, str(pair["KeyName"]))
        await retag(work, str(pair["KeyPairId"]), pair, work.desired.tags())


def _is_of_user(work: Work) -> bool:
    """Return whether a pair has our name, but was not imported for this cluster."""
    pair = work.snapshot.key_pair
    return (
        pair is not None and not work.state.get(KEY_PAIR) and not work.desired.owns(tags_of(pair))
    )


def _taken(work: Work) -> str:
    return (
        f'there is a key pair "{_name(work)}" already, without the tag {work.desired.cluster_tag}; '
        "delete it, or import it under another name"
    )


def _why_replaced(work: Work) -> str:
    """Return why the existing pair must be replaced; empty if it is right."""
    pair = work.snapshot.key_pair or {}
    if work.state.get(KEY_PAIR_SPEC_FINGERPRINT) != spec_fingerprint(work.desired.ssh_public_key):
        return "the public key has changed"
    known = work.state.get(KEY_PAIR_FINGERPRINT)
    if known is None and work.desired.owns(tags_of(pair)):
        return ""  # a run that was killed imported it
    if known != pair.get("KeyFingerprint"):
        return "it was changed in AWS"
    return ""


def _why_retagged(work: Work) -> str:
    has_tags = work.desired.tags().items() <= tags_of(work.snapshot.key_pair or {}).items()
    return "" if has_tags else "tags are missing"


async def _replace(work: Work) -> None:
    if _exists(work):
        await work.aws.call("ec2", "DeleteKeyPair", KeyName=_name(work))
    try:
        await _import(work)
    except AlreadyExists:  # the snapshot is older
        work.snapshot.key_pair = await _described(work.aws, _name(work))
        if _is_of_user(work):
            raise configuration_problem(_taken(work)) from None
        await work.aws.call("ec2", "DeleteKeyPair", KeyName=_name(work))
        await _import(work)


async def _import(work: Work) -> None:
    """Import the public key, after recording that: a killed run need not repeat it.

    No pair exists now, so one that exists later without a known fingerprint can only be this one.
    """
    name, tags = _name(work), work.desired.tags()
    work.state.forget(KEY_PAIR_FINGERPRINT)
    work.state.set(KEY_PAIR_SPEC_FINGERPRINT, spec_fingerprint(work.desired.ssh_public_key))
    await work.save()
    answer = await work.aws.call(
        "ec2",
        "ImportKeyPair",
        KeyName=name,
        PublicKeyMaterial=work.desired.ssh_public_key,
        TagSpecifications=specification("key-pair", tags),
    )
    fingerprint = str(answer["KeyFingerprint"])
    # Together with the name, which is written at once.
    work.state.set(KEY_PAIR_FINGERPRINT, fingerprint)
    work.state.created(KEY_PAIR, name)
    work.snapshot.key_pair = {
        "KeyName": name,
        "KeyPairId": answer.get("KeyPairId"),
        "KeyFingerprint": fingerprint,
        "Tags": specification("key-pair", tags)[0]["Tags"],
    }


async def _remove(work: Work) -> None:
    for name in to_delete(work, _OURS):
        await one_of(kinds.KEY_PAIR)(work, name)
    for key in (KEY_PAIR, KEY_PAIR_FINGERPRINT, KEY_PAIR_SPEC_FINGERPRINT):
        work.state.forget(key)


def _exists(work: Work) -> bool:
    return work.snapshot.key_pair is not None


def _name(work: Work) -> str:
    return work.state.get(KEY_PAIR) or work.desired.name(_SUFFIX)


def delete_steps() -> list[Step]:
    """Return the step that deletes the key pair."""
    return [delete_ours(DELETE, _OURS, also=(KEY_PAIR_FINGERPRINT, KEY_PAIR_SPEC_FINGERPRINT))]
