"""Sends requests to model endpoints and stores their replies, whatever the endpoint does.

============== ================================================================================
apis           how each API is asked: a request's canonical form, and its digest: the cache key
endpoint       where a model's requests go, how many at once, and what serves it
-------------- --------------------------------------------------------------------------------
engine         takes blocks of jobs from any thread, returns their results
endpoint_queue what the engine knows of a queue; what waits for one model, and how many tokens it will take
queue          the jobs of one endpoint, and the coroutines that send them
admission      lets a request start when the limits allow it, and hears what replies say of them
keys           where a key comes from, and how it is taken out of replies
replicas       which of several servers gets a request, and who waits for one that is away
wire           one exchange over HTTP
posting        its POST, over aiohttp's connections
writer         puts records into the store, commits them, then lets them count
batch          the same for requests that travel in batches
-------------- --------------------------------------------------------------------------------
reply          what an answer means: final, worth a retry, failed; how long to wait
retry          when to try again, when to give an endpoint up
rates          declared connections, requests and tokens per second, shared out to workers
controller     how many requests in flight, and how fast, where nobody declared it
sharing        one controller for all workers; turns of a common pace
sse, streams   a streamed reply as the body that it would have had whole
jobs           jobs, who waits for which, results and running totals
============== ================================================================================

The third part is pure: no clock, no socket, tested from tables. `apis` and `endpoint` are what planning imports; they
load neither aiohttp nor asyncio.
"""
