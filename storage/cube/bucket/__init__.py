"""A cube's space in a bucket of S3, GCS or Azure: objects that are put on conditions, and neither locks nor renames.

A store makes durable what it acknowledges, and puts an object in one step, so that nothing has to be synced or swept.
What a directory does by links, renames and locks is done by two conditions that a put may have here: that there is no
object of that name (``If-None-Match``), or that it is still the one that was seen (``If-Match``).

==========  ======================================================================
objects     objects under keys, listed and deleted; the space itself
conditions  puts on a condition, also where the store's answer is lost
creation    a cube whose metadata come last, so that it appears whole or not at all
records     a log of numbered objects, each of which must be absent; a lease put over the version that was seen
==========  ======================================================================
"""
