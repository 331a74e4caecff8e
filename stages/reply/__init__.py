"""The contract between `infer` and `process`: what a stored reply looks like, and how trials end.

======== ===============================================================
forms    what is stored of a reply, and where text, finish reason and token counts stand, by API
body     a body as a JSON document, its errors, its token counts
status   the outcome of a trial as a small integer, names of counters
======== ===============================================================

Both stages read the same thing out of the same bytes because both read it here.
"""
