"""The optional dependency group of Pergola with the AWS client library."""

from importlib.util import find_spec

from pergola.cloud.errors import LibraryMissing


def require_library() -> None:
    """Check that the AWS client library is installed.

    Raises:
        LibraryMissing: it is not installed; the text names the extra that installs it.
    """
    if find_spec("aiobotocore") is None:
        raise LibraryMissing("this needs pergola[aws]: pip install 'pergola[aws]'")
