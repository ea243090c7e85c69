"""A bucket of S3: existence, settings, object lock and content, one module each."""
