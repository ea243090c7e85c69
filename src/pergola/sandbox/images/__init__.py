"""Container images without a container engine and without a registry.

An image is made from static binaries or from file trees, into a store of content-addressed blobs in
the user's cache; equal layers are kept once. `catalogue` lists what can be provided, `build` makes
it, `archive` writes images as one OCI archive that containerd and other engines import.
"""
