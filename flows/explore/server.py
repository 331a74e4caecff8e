"""Serves the explorer on this machine: one page, its files, and a JSON API that only reads."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.log import server_logger
from aiohttp.typedefs import Handler, Middleware

from evalcube import EvalcubeError
from evalcube.flows.errors import SweepError
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query

PLOTLY = "plotly.min.js"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    # plotly.js adds rules of its own to the page; styles can run nothing.
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""Content security policy: scripts are files beside the page, and nothing is loaded from elsewhere."""


@cache
def own_files() -> dict[str, bytes]:
    """Return the front end's files by their path below the page."""
    contents = {
        f"{folder}{path.name}": path.read_bytes()
        for folder in ("", "views/")
        for path in files(__package__).joinpath(f"static/{folder}").iterdir()
        if path.name.endswith(tuple(TYPES))
    }
    return dict(sorted(contents.items()))


def plotly_file() -> Path:
    """Where the installed plotly keeps plotly.js."""
    spec = find_spec("plotly")
    script = (
        None if spec is None or spec.origin is None else Path(spec.origin).parent / "package_data" / PLOTLY
    )
    if script is None or not script.is_file():
        raise SweepError(
            "the explorer's charts need the extra `explore`, which is not installed",
            "Run: pip install 'evalcube[explore]'",
        )
    return script


LOOPBACK = ("127.0.0.1", "localhost", "::1")
_COOKIE = "evalcube_explore"
"""Begins the name of the cookie, which a port ends: a browser shares cookies among all ports of a machine."""

_EXPLORED: web.AppKey[Explored] = web.AppKey("explored", Explored)


def application(explored: Explored, token: str = "") -> web.Application:
    """The explorer as an aiohttp application."""
    plotly = plotly_file()
    app = web.Application(middlewares=[_guard(token)])
    app[_EXPLORED] = explored

    async def script(_: web.Request) -> web.StreamResponse:
        # The browser may keep it: another plotly is another file under another address of a new explorer.
        headers = {"Content-Type": TYPES[".js"], "Cache-Control": "max-age=86400"}
        return web.FileResponse(plotly, headers=headers)

    app.router.add_get(f"/{PLOTLY}", script)
    app.router.add_get("/api/{name}", _answer)
    app.router.add_get("/{path:.*}", _file)
    return app


async def _file(request: web.Request) -> web.StreamResponse:
    path = request.match_info["path"] or "index.html"
    data = own_files().get(path)
    if data is None:
        raise web.HTTPNotFound(text="there is no such page\n")
    return web.Response(body=data, content_type=TYPES[path[path.rindex(".") :]], charset="utf-8")


async def _answer(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    try:
        answer = await asyncio.to_thread(ask, request.app[_EXPLORED], name, Query.of(request.query.items()))
        document = await asyncio.to_thread(json.dumps, answer, allow_nan=False)
    except EvalcubeError as error:
        document = json.dumps({"error": {"message": error.message, "remedy": error.remedy}})
        return web.Response(text=document, status=400, content_type="application/json")
    return web.Response(text=document, content_type="application/json")


def _guard(token: str) -> Middleware:
    """Refuses who may not ask, and says in each reply what a browser may do with it."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        reply = _refusal(request, token)
        if reply is None:
            try:
                reply = await handler(request)
            except web.HTTPException as error:
                reply = web.Response(text=error.text, status=error.status)
        reply.headers.setdefault("Cache-Control", "no-store")
        reply.headers.update(
            {
                "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
        )
        return reply

    return guard


def _refusal(request: web.Request, token: str) -> web.StreamResponse | None:
    """What is told to who may not ask; a redirect to who has shown the token."""
    try:
        asked = urlsplit(f"//{request.host}")
        host, port = asked.hostname or "", asked.port or 80
        origin = request.headers.get("Origin")
        foreign = origin is not None and urlsplit(origin).netloc != request.host
    except ValueError:  # no address at all
        return web.Response(text="the Host or the Origin is malformed\n", status=400)
    foreign = foreign or _from_elsewhere(request)
    # A page elsewhere can have a browser ask here, also under a name of its own that means this machine. It cannot
    # choose the Host or the Origin that the browser then names.
    if (not token and host not in LOOPBACK) or foreign:
        return web.Response(text="asked from another page, or by another name\n", status=403)
    if not token:
        return None
    cookie = f"{_COOKIE}_{port}"
    if _same(request.query.get("token", ""), token):
        reply = web.Response(status=303, headers={"Location": "/"})
        reply.set_cookie(cookie, token, httponly=True, samesite="Strict", path="/")
        return reply
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if _same(request.cookies.get(cookie, ""), token) or _same(bearer, token):
        return None
    return web.Response(text="open the address with the token that `evalcube explore` printed\n", status=401)


def _from_elsewhere(request: web.Request) -> bool:
    """Whether a browser says that the page of another asks; a link there may lead to the page, but to no answer."""
    if request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    return request.path.startswith("/api/") or request.headers.get("Sec-Fetch-Mode") != "navigate"


def _same(shown: str, token: str) -> bool:
    # Bytes of a header that are no text come as halves of surrogate pairs.
    return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), token.encode())


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether what the server logs may be a defect: a malformed request is answered, and nothing to be shown here."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, (HttpProcessingError, web.RequestPayloadError, UnicodeError))


_FIRST = (("overview", Query()), ("ranking", Query.make(quick="1")))
"""What every first page asks for."""


def serve(
    cubes: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    with_token: bool = False,
    cache: str | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve the explorer until Ctrl-C."""
    explored = Explored(cubes, cache)
    # What is wrong with a cube is told here, and not in the browser; and the first page finds its answers made.
    for name, query in _FIRST:
        ask(explored, name, query)
    token = secrets.token_urlsafe(24) if with_token or host not in LOOPBACK else ""
    app = application(explored, token)
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        raise SweepError(
            f"`port`: cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}",
            "Give another port, or none",
        ) from error
    named = f"[{host}]" if ":" in host else host
    ready(f"http://{named}:{bound.getsockname()[1]}/" + (f"?token={token}" if token else ""))
    server_logger.addFilter(_is_ours)
    web.run_app(app, sock=bound, print=None, access_log=None)
