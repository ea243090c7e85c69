"""The environment of programs that use the simulated AWS in place of AWS."""


def variables(url: str) -> dict[str, str]:
    """Return the variables for the AWS at a URL.

    A program that looks for its role reads the endpoint of STS first. The metadata service of an
    instance cannot be reached; some programs would wait for it.
    """
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT_URL_STS": url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
