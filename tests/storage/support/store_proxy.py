"""Stands between a client and an object store: counts requests, and does to them what networks and stores do.

Run as a program with its port and the address of the store; a POST of settings to ``/__settings`` changes what it does.
"""

import asyncio
import json
import re
import sys
from collections import Counter

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

SETTINGS = {
    "slow": 0.0,  # seconds that each request takes longer
    "busy": 0,  # of so many requests one is answered 503 SlowDown, and not done
    "broken": 0,  # of so many writing requests one is done, and answered 500
    "lost": 0,  # of so many writing requests one is done, and its answer lost
    "down": False,  # nobody is there
    "held": "",  # pattern: writing requests whose path fits, and that come now, wait for "release"
}
BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
BROKEN = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
WRITING = {"PUT", "POST", "DELETE"}
HOP = {"connection", "transfer-encoding", "content-encoding", "content-length", "date", "server"}


class Proxy:
    def __init__(self, upstream):
        self.upstream = upstream.rstrip("/")
        self.settings = dict(SETTINGS)
        self.released = asyncio.Event()
        self.counts = Counter()
        self.requests = self.written = self.sent = self.received = 0

    async def control(self, request):
        if request.path == "/__settings":
            self.settings = {**SETTINGS, **json.loads(await request.read())}
        if request.path == "/__release":
            self.released.set()
            self.released = asyncio.Event()
        if request.path == "/__reset":
            self.counts.clear()
            self.sent = self.received = 0
        counts = {**self.counts, "bytes_sent": self.sent, "bytes_received": self.received}
        return web.json_response(counts)

    async def handle(self, request):
        if request.path.startswith("/__"):
            return await self.control(request)
        self.requests += 1
        writes = request.method in WRITING
        self.written += writes
        settings, number, written = self.settings, self.requests, self.written
        if settings["down"]:
            return self.hung_up(request)
        await asyncio.sleep(settings["slow"])
        body = await request.read()
        listed = request.method == "GET" and ("list-type" in request.query or "prefix" in request.query)
        self.counts["LIST" if listed else request.method] += 1
        self.received += len(body)
        if settings["busy"] and number % settings["busy"] == 0:
            self.counts["busy"] += 1
            return web.Response(status=503, body=BUSY, headers={"Retry-After": "0"})
        if writes and settings["held"] and re.search(settings["held"], request.path):
            self.counts["held"] += 1
            await self.released.wait()
        status, headers, content = await self.forwarded(request, body)
        if writes and settings["lost"] and written % settings["lost"] == 0:
            self.counts["lost"] += 1
            return self.hung_up(request)
        if writes and settings["broken"] and written % settings["broken"] == 0:
            self.counts["broken"] += 1
            return web.Response(status=500, body=BROKEN)
        self.sent += len(content)
        kept = {name: value for name, value in headers.items() if name.lower() not in HOP}
        if request.method == "HEAD":
            kept["Content-Length"] = headers.get("Content-Length", "0")
            return web.Response(status=status, headers=kept)
        return web.Response(status=status, headers=kept, body=content)

    async def forwarded(self, request, body):
        url = URL(self.upstream + request.raw_path, encoded=True)
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in HOP - {"date"}
        }
        async with self.client.request(
            request.method, url, data=body, headers=headers, allow_redirects=False
        ) as reply:
            return reply.status, reply.headers, await reply.read()

    @staticmethod
    def hung_up(request):
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def serve(self, port):
        timeout = ClientTimeout(total=120)
        async with ClientSession(
            connector=TCPConnector(limit=0), timeout=timeout, auto_decompress=False
        ) as client:
            self.client = client
            application = web.Application(client_max_size=2**30)
            application.router.add_route("*", "/{tail:.*}", self.handle)
            runner = web.AppRunner(application, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(Proxy(sys.argv[2]).serve(int(sys.argv[1])))
