"""Clients of cloud APIs; `aws` is the only one.

A client authenticates, reads all pages, slows down when it is throttled, retries where that is
safe, and reports failures in one sentence (`errors`).

Not for: deciding how a network should look, or waiting for changes in a cloud.
"""
