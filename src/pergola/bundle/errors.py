"""Errors of bundles.

BundleError                root: every failure of this room that is not the API server's
├── InvalidObject          a manifest that cannot become part of a bundle
├── DuplicateObject        two manifests of one object
├── ObjectTooLarge         one manifest alone fills more than a Secret can hold
├── NameTaken              an object of this unique name is there, with other content
└── WaitTimeout            a ManagedResource did not get there in time
"""


class BundleError(Exception):
    """Base class of all failures of this room."""


class InvalidObject(BundleError):
    """A manifest cannot become part of a bundle."""


class DuplicateObject(BundleError):
    """An object is described twice."""


class ObjectTooLarge(BundleError):
    """An object does not fit into a Secret, and cannot be split."""


class NameTaken(BundleError):
    """The unique name of an object belongs to different content."""


class WaitTimeout(BundleError):
    """A ManagedResource did not reach the expected state in time."""
