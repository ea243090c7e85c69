"""Access control: who may open the page, and what they may see.

viewer       what the server needs to know of a person: a client, and what they may see
sessions     cookies
local        on loopback: a one-time link, and the permissions of the caller's kubeconfig
cluster      over TLS: a bearer token opens a session, or comes with each request
visitors     the users of these tokens
reviews      questions to the API server about tokens and permissions
permissions  what one user may list, remembered for a short time
lifetimes    how short
"""
