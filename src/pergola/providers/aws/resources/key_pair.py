"""The SSH key pair of nodes (spec 30 §10.4)."""

import hashlib
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by, tags_of
from pergola.cloud.errors import AlreadyExists
from pergola.extension_api.errors import configuration_problem
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import kinds
from pergola.providers.aws.resources.decision import Call, Decision
from pergola.providers.aws.resources.observation import Observation
from pergola.providers.aws.resources.ours import Ours, anything
from pergola.providers.aws.resources.removal import deletion_step_of, one_of, to_delete
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.tags import differing, retag, specification
from pergola.providers.aws.state import (
    KEY_PAIR,
    KEY_PAIR_FINGERPRINT,
    KEY_PAIR_SPEC_FINGERPRINT,
)

NAME: Final = "ensure key pair"
_SUFFIX: Final = "ssh-publickey"
DELETE: Final = "delete key pair"
_FINGERPRINTS: Final = (KEY_PAIR_FINGERPRINT, KEY_PAIR_SPEC_FINGERPRINT)
_KEYS: Final = (KEY_PAIR, *_FINGERPRINTS)
_OURS: Final = Ours(kind=kinds.KEY_PAIR, key=KEY_PAIR, accept=anything)


def steps(desired: Desired) -> list[Step]:
    """Return the step of the key pair, which deletes the pair without a public key."""
    del desired
    return [Step(name=NAME, decide=_decide)]


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


def _decide(work: Work) -> Decision:
    name, pair = _name(work), work.snapshot.key_pair
    if not work.desired.ssh_public_key:
        return _decide_without_key(work, name)
    if pair is None:
        return Decision.creation(f'key pair "{name}"', partial(_replace, work))
    if _is_of_user(work):
        return Decision.refuse(configuration_problem(_taken(work)))
    why = _why_replaced(work, pair)
    if why:
        return Decision.change(f"{name}: {why}", partial(_replace, work))
    record = {KEY_PAIR_FINGERPRINT: str(pair["KeyFingerprint"]), KEY_PAIR: str(pair["KeyName"])}
    return Decision.change_or_keep(name, _tag_changes(work, pair), record)


def _decide_without_key(work: Work, name: str) -> Decision:
    calls = [partial(one_of(kinds.KEY_PAIR), work, each) for each in to_delete(work, _OURS)]
    if not calls:
        return Decision.skip("there is no public key", forget=_KEYS)
    return Decision.deletion(f"{name}: there is no longer a public key", *calls, forget=_KEYS)


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


def _why_replaced(work: Work, pair: JsonObject) -> str:
    """Return why the existing pair must be replaced; empty if it is right."""
    if work.state.get(KEY_PAIR_SPEC_FINGERPRINT) != spec_fingerprint(work.desired.ssh_public_key):
        return "the public key has changed"
    known = work.state.get(KEY_PAIR_FINGERPRINT)
    if known is None and work.desired.owns(tags_of(pair)):
        return ""  # a run that was killed imported it
    return "it was changed in AWS" if known != pair.get("KeyFingerprint") else ""


def _tag_changes(work: Work, pair: JsonObject) -> dict[str, Call]:
    tags = _OURS.tags(work)
    missing, unknown = differing(work, pair, tags)
    correct = partial(retag, work, str(pair["KeyPairId"]), pair, tags)
    if missing:
        return {"tags are missing": correct}
    return {"its tags": correct} if unknown else {}


async def _replace(work: Work) -> None:
    if work.snapshot.key_pair is not None:
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


def _name(work: Work) -> str:
    return work.state.get(KEY_PAIR) or work.desired.name(_SUFFIX)


def delete_steps() -> list[Step]:
    """Return the step that deletes the key pair."""
    return [deletion_step_of(DELETE, _OURS, also=_FINGERPRINTS)]
