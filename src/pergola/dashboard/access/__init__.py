"""Who may open the page, and what they see there.

viewer    what the server needs to know of a person: a client, and what they may see
sessions  cookies
local     on loopback: a one-time link, and the permissions of the caller's kubeconfig
"""
