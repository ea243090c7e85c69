"""Settings of a bucket: encryption, no public access, TLS only, and expiry of old data.

In settings that are lists, our entries have names, and others are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.providers.aws.resources.bucket.bucket import Bucket
from pergola.runtime.task_group import gathered

DAYS: Final = 7
"""The retention of incomplete uploads, and of replaced or deleted versions."""
_PUBLIC_ACCESS: Final = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
_TLS: Final = {
    "PergolaDenyInsecureTransport": {"Bool": {"aws:SecureTransport": "false"}},
    "PergolaDenyOldTls": {"NumericLessThan": {"s3:TlsVersion": "1.2"}},
}
"""One statement each, because all conditions of a statement must hold."""
_LIFECYCLE: Final[JsonObject] = {
    "pergola-incomplete-uploads": {
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": DAYS},
    },
    "pergola-old-versions": {
        "NoncurrentVersionExpiration": {"NoncurrentDays": DAYS},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
    },
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        title: its purpose, as a noun phrase.
        desired: returns the parameters to write, given those in AWS; None if nothing differs.
    """

    title: str
    get: str
    put: str
    desired: Callable[[Bucket, JsonObject], JsonObject | None]


async def observe_settings(bucket: Bucket) -> Mapping[Setting, JsonObject]:
    """Return the settings that differ, each with the parameters that correct it.

    Raises:
        CloudError: AWS refused.
    """
    answers = await gathered(bucket.find(each.get) for each in SETTINGS)
    plans = [
        (setting, setting.desired(bucket, answer or {}))
        for setting, answer in zip(SETTINGS, answers, strict=True)
    ]
    return {setting: plan for setting, plan in plans if plan is not None}


async def apply_settings(bucket: Bucket, plans: Mapping[Setting, JsonObject]) -> None:
    """Write settings.

    Raises:
        CloudError: AWS refused.
    """
    for setting, parameters in plans.items():
        await bucket.call(setting.put, **parameters)


def _encryption(bucket: Bucket, current: JsonObject) -> JsonObject | None:
    """Encrypt with S3's keys, unless the bucket has any default encryption."""
    del bucket
    for rule in maps_at(current, "ServerSideEncryptionConfiguration", "Rules"):
        if map_at(rule, "ApplyServerSideEncryptionByDefault").get("SSEAlgorithm"):
            return None
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def _public_access(bucket: Bucket, current: JsonObject) -> JsonObject | None:
    del bucket
    if map_at(current, "PublicAccessBlockConfiguration") == _PUBLIC_ACCESS:
        return None
    return {"PublicAccessBlockConfiguration": dict(_PUBLIC_ACCESS)}


def _policy(bucket: Bucket, current: JsonObject) -> JsonObject | None:
    document: JsonObject = orjson.loads(current.get("Policy") or b"{}")
    statements = _as_list(document.get("Statement"))
    desired = [_denial(bucket, name, when) for name, when in _TLS.items()]
    found = _named(statements, "Sid")
    if all(_canonical(found.get(each["Sid"])) == _canonical(each) for each in desired):
        return None
    others = [each for each in statements if each.get("Sid") not in _TLS]
    written = {"Version": "2012-10-17", **document, "Statement": [*others, *desired]}
    return {"Policy": orjson.dumps(written).decode()}


def _denial(bucket: Bucket, name: str, when: JsonObject) -> JsonObject:
    return {
        "Sid": name,
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket.arn, f"{bucket.arn}/*"],
        "Condition": when,
    }


def _lifecycle(bucket: Bucket, current: JsonObject) -> JsonObject | None:
    del bucket
    rules = maps_at(current, "Rules")
    found = _named(rules, "ID")
    desired: JsonObject = {name: {"Status": "Enabled", **rule} for name, rule in _LIFECYCLE.items()}
    if all(rule.items() <= found.get(name, {}).items() for name, rule in desired.items()):
        return None
    others = [each for each in rules if each.get("ID") not in desired]
    ours = [{"ID": name, "Filter": {"Prefix": ""}, **rule} for name, rule in desired.items()]
    return {"LifecycleConfiguration": {"Rules": [*others, *ours]}}


SETTINGS: Final[Sequence[Setting]] = (
    Setting("default encryption", "GetBucketEncryption", "PutBucketEncryption", _encryption),
    Setting(
        "a block of public access", "GetPublicAccessBlock", "PutPublicAccessBlock", _public_access
    ),
    Setting("a policy that requires TLS 1.2", "GetBucketPolicy", "PutBucketPolicy", _policy),
    Setting(
        "an end of incomplete uploads and old versions",
        "GetBucketLifecycleConfiguration",
        "PutBucketLifecycleConfiguration",
        _lifecycle,
    ),
)


def _named(several: Sequence[JsonObject], key: str) -> dict[str, JsonObject]:
    return {str(each.get(key)): each for each in several}


def _as_list(value: JsonValue) -> list[JsonObject]:
    several = value if isinstance(value, list) else [value]
    return [each for each in several if isinstance(each, dict)]


def _canonical(value: JsonValue) -> JsonValue:
    """Return a part of a policy in canonical form: a single value equals a list of one."""
    match value:
        case dict():
            return {key: _canonical(each) for key, each in value.items()}
        case [one]:
            return _canonical(one)
        case list():
            return [*sorted(map(str, value))]
    return value
