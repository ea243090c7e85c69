"""Manifests into ManagedResources: unique names, compression, splitting, references."""
