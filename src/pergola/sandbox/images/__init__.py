"""Container images without a container engine and without a registry.

Images are built from static binaries or file trees into a store of content-addressed blobs in the
user's cache, which stores equal layers once. `catalogue` lists the available images, `build` builds
them, and `oci.archive` writes them as one OCI archive that containerd and other engines import.
"""
