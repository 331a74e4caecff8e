"""The response cache: values by digest, in a directory, on an object store or on a Redis server.

============  =========================================================================================================
cache         the cache at an address: where everybody begins
contract      what every cache promises
entry         the content of an entry, compressed and checked
directory     a cache in a directory, of these parts:
folders       where things are in it
packs         the bytes of a pack, and of its index once nobody writes it any more
writer        all packs of this process: commits, seals, forks
key_index     locations of all known records, by key
pack_index    the packs of all processes, and what is new in them
reader        values, verified, and all entries in order
compaction    recovery after a crash, removal, merging
remote        a cache on a store that a network leads to, of these parts:
objects       S3, GCS, Azure
redis         Redis, Valkey
archive       a cache's entries in one file
============  =========================================================================================================
"""
