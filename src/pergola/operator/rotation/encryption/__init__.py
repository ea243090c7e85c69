"""Encryption at rest of the virtual cluster: new keys, and rewriting encrypted objects."""
