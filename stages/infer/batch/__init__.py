"""Requests that travel through batch APIs, many in one file, answered within hours at a lower price.

====== ========================================================================
queue  gathers a model's requests and puts them into batches
job    one batch, from its upload until its answers are in the store
lines  the lines of its files, what the endpoint says of it, and the note by which another process finds it, as values
wire   upload, create, poll, find, download over HTTP
====== ========================================================================
"""
