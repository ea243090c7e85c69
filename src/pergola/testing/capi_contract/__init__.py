"""Does a provider keep its hands off cluster infrastructure that others manage? (spec 50 §10).

A suite for pytest that any provider's repository can run against its own controller, in whatever
language that is: it needs an API server, the CRDs of Cluster API and of the provider, and two
manifests. It only looks at what happens to objects.

    pytest -p pergola.testing.capi_contract.plugin --pyargs pergola.testing.capi_contract \
        --capi-managed-manifest managed.yaml --capi-external-manifest external.yaml

`plugin` (options, fixtures, the table at the end) → `subject` (what is tested) → `site` (objects of
one case) → `writes` (who wrote what). The cases are `test_managed`, `test_external`, `test_webhook`
and `test_optional`. `docs/capi-contract-suite.md` is for users.
"""
