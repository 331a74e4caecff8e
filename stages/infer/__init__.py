"""Sends requests to model endpoints and stores their replies, whatever the endpoint does.

============== ================================================================================
request        the canonical form of a request, and its digest: the cache key
apis           how each API wants to be asked
endpoint       where a model's requests go, and how many at once
-------------- --------------------------------------------------------------------------------
engine         takes blocks of jobs from any thread, returns their results
coalescing     who waits for which job: equal ones in flight are sent once
queue          the jobs of one endpoint, and the coroutines that send them
admission      lets a request start when the limits allow it
replicas       which of several servers gets a request, and who waits for one that is away
wire           one exchange over HTTP
writer         puts records into the store, commits them, then lets them count
batch          the same for requests that travel in batches
-------------- --------------------------------------------------------------------------------
reply          what an answer means: final, worth a retry, failed
retry          when to try again, when to give an endpoint up
retry_after    how long the endpoint asks to wait
rates          connections, requests and tokens per second, shared out to workers
aimd           fewer requests in flight for an endpoint that is overloaded
engines        what serves a model, from what servers say of themselves
token_estimate how many tokens a request will take
sse, streams   a streamed reply as the body that it would have had whole
jobs           jobs, results and running totals, as values
============== ================================================================================

The third part is pure: no clock, no socket, tested from tables. `request`, `apis` and `endpoint` are what planning
imports; they load neither aiohttp nor asyncio.
"""
