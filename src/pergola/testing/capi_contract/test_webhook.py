"""The annotation cannot be taken away."""

from collections.abc import Awaitable, Callable

import pytest

from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import JsonObject, Key
from pergola.externally_managed.contract import done
from pergola.externally_managed.predicate import is_externally_managed
from pergola.externally_managed.webhook import DETAIL, FIELD
from pergola.kube.errors import ApiError
from pergola.kube.patches import escape_pointer
from pergola.testing.capi_contract.site import HOLD, TOUCHED, Site

pytestmark = pytest.mark.asyncio

Removal = Callable[[Site, Key], Awaitable[JsonObject]]

WITHOUT: JsonObject = {"metadata": {"annotations": {MANAGED_BY: None}}}
POINTER = f"/metadata/annotations/{escape_pointer(MANAGED_BY)}"
REMOVALS: dict[str, Removal] = {
    "merge patch": lambda site, key: site.patch(key, WITHOUT),
    "JSON patch": lambda site, key: site.patch(key, [{"op": "remove", "path": POINTER}]),
    "all annotations": lambda site, key: site.patch(key, {"metadata": {"annotations": None}}),
    "replace": lambda site, key: site.replace(key, WITHOUT),
    "apply": lambda site, key: site.apply_without(key, MANAGED_BY),
}


async def test_objects_are_admitted_with_and_without_it(capi_site: Site) -> None:
    """Objects may be created and updated with it and without."""
    for create in (capi_site.create_managed, capi_site.create_external):
        key = capi_site.new_key()
        await create(key)
        await admitted(capi_site.annotate(key, TOUCHED, "1"))


async def test_it_may_be_added(capi_site: Site) -> None:
    """It may be added, also together with other changes."""
    key = capi_site.new_key()
    await capi_site.create_managed(key)
    changes = {MANAGED_BY: "contract", TOUCHED: "1"}
    await admitted(capi_site.patch(key, {"metadata": {"annotations": changes}}))


@pytest.mark.parametrize("value", ["another", ""], ids=["another", "empty"])
async def test_its_value_may_change(capi_site: Site, value: str) -> None:
    """Its value may change."""
    key = capi_site.new_key()
    await capi_site.create_external(key, "one")
    await admitted(capi_site.annotate(key, MANAGED_BY, value))


@pytest.mark.parametrize("how", REMOVALS)
async def test_it_cannot_be_removed(capi_site: Site, how: str) -> None:
    """It cannot be removed, whichever way."""
    key = capi_site.new_key()
    await capi_site.create_external(key, applied=True)
    await refused(capi_site, key, REMOVALS[how](capi_site, key))


async def test_it_cannot_be_removed_in_any_version(capi_site: Site) -> None:
    """It cannot be removed through any version that is served."""
    for version in capi_site.kinds.served:
        key = capi_site.new_key()
        await capi_site.create_external(key)
        await refused(capi_site, key, capi_site.patch(key, WITHOUT, version=version))


async def test_the_refusal_has_the_form_that_clients_know(capi_site: Site) -> None:
    """The refusal is a 422 that names the field."""
    key = capi_site.new_key()
    await capi_site.create_external(key)
    error = await refused(capi_site, key, capi_site.patch(key, WITHOUT))
    if (error.code, error.reason) != (422, "Invalid"):
        pytest.fail(f"the refusal is {error.code} {error.reason}, not 422 Invalid", pytrace=False)
    causes = [(cause.get("field"), cause.get("reason")) for cause in error.causes]
    if (FIELD, "FieldValueInvalid") not in causes or DETAIL not in str(error):
        pytest.fail(
            f'the refusal names no invalid {FIELD} with "{DETAIL}", but {causes}: {error}',
            pytrace=False,
        )


async def test_deletion_is_not_an_exception(capi_site: Site) -> None:
    """While it is being deleted it cannot be removed either, but finalizers can."""
    key = capi_site.new_key()
    await capi_site.create_external(key, finalizers=[HOLD])
    await admitted(capi_site.delete(key))
    await refused(capi_site, key, capi_site.patch(key, WITHOUT))
    async with capi_site.witness(key) as witness:
        await admitted(capi_site.patch(key, {"metadata": {"finalizers": None}}))
        await witness.until_gone()


async def test_status_and_deletion_are_admitted(capi_site: Site) -> None:
    """Its manager may write the status, and delete it."""
    key = capi_site.new_key()
    await capi_site.create_external(key)
    await admitted(capi_site.write_status(key, done(capi_site.kinds.contract.version)))
    await admitted(capi_site.delete(key))


async def admitted(request: Awaitable[object]) -> None:
    """Fail if a request is refused."""
    try:
        await request
    except ApiError as error:
        pytest.fail(f"this must be admitted, but was refused: {error}", pytrace=False)


async def refused(site: Site, key: Key, request: Awaitable[object]) -> ApiError:
    """Return the refusal; fail if there is none, or if the annotation was removed nevertheless."""
    try:
        await request
    except ApiError as error:
        if is_externally_managed(await site.get(key)):
            return error
    kind = site.kinds.infra.kind
    pytest.fail(
        f"the annotation {MANAGED_BY} could be removed from {kind} {key}: a validating webhook for "
        f"updates of {kind} must refuse that",
        pytrace=False,
    )
