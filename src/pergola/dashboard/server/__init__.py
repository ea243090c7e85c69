"""The HTTP server of the page.

app        routes, and the server as a context
guards     what every request has to pass: host, session, headers of the answer
files      the static files of the page
stream     the feed as server-sent events
tls        the certificate, reloaded while it serves
visible    what of the feed one viewer sees
sse        the format of server-sent events
objects    the details of one object, read when it is opened
redaction  what leaves the process of an object
answers    what products answer: why, flows, pictures
"""
