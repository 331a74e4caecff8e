"""Requests that travel through batch APIs, many in one file, answered within hours at a lower price.

========= =====================================================================
queue     gathers a model's requests and puts them into batches
job       one batch, from its upload until its answers are in the store
lines     a batch, its answers, and the note by which another process finds it, as values
protocols how each provider is asked, as a table
wire      upload, create, poll, find, download over HTTP
========= =====================================================================
"""
