"""Infrastructure in AWS: created, or brought by users and only used (spec 30)."""
