"""A bucket of S3: existence, settings, object lock and content; each module has one of them."""
