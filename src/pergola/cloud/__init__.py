"""Clients of cloud APIs; `aws` is the only one.

A client authenticates, reads all pages, slows down when it is throttled, retries what may be
retried, and reports in one sentence what went wrong (`errors`).

Not for: deciding what a network should be, or waiting until something in a cloud has happened.
"""
