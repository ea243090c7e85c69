"""A test suite: does a provider leave externally managed infrastructure alone? (spec 50 §10).

Any provider can run it with pytest against its own controller, in whatever language: it needs an
API server, the CRDs of Cluster API and of the provider, and two manifests. It only observes
objects.

    pytest -p pergola.testing.capi_contract.plugin --pyargs pergola.testing.capi_contract \
        --capi-managed-manifest managed.yaml --capi-external-manifest external.yaml

`plugin` (options, fixtures, the final table) → `subject` (the tested provider) → `site` (objects of
one case) → `writes` (who wrote what). The cases are `test_managed`, `test_external`, `test_webhook`
and `test_optional`. `docs/how-to/capi-contract-suite.md` documents the suite.
"""
