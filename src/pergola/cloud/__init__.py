"""Cloud APIs, for the products that need them: `aws` is the client of Amazon's.

A client authenticates, turns pages, waits for its turn when it is throttled, retries what may be
retried, and says in one sentence what went wrong (`errors`).

Not for: deciding what a network should be, or waiting until something in a cloud has happened.
"""
