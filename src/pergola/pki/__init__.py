"""CAs and certificates, and their rotation.

Not for: where they are stored or who is told; that is the business of whoever owns them.
"""
