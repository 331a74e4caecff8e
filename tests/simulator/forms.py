"""The four APIs that the simulator speaks: gives chat completions and errors the form of each, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tests.simulator.faults import Rule
from tests.simulator.wire import JSON, Ending, Response, json_response

Body = dict[str, Any]
Event = tuple[str, Any]
"""Name (empty but in the messages API) and data."""

_MOST_PIECES = 64
_SHORTEST_PIECE = 4
_DONE = "[DONE]"
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
}
_ERROR_KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Form:
    """One API."""

    name: str
    reshape: Callable[[Body], Body]
    """Returns a chat completion as this API has it."""
    events: Callable[[Body], Iterator[Event]]
    """Yields a reply of this API as the events of a stream; the last one marks its end."""


def _same(body: Body) -> Body:
    return body


def _completion(body: Body) -> Body:
    choices = [
        {"index": 0, "text": _whole_text(choice["message"]), "finish_reason": choice["finish_reason"]}
        for choice in body["choices"]
    ]
    name = str(body["id"]).replace("chatcmpl", "cmpl")
    return {**body, "id": name, "object": "text_completion", "choices": choices}


def _whole_text(message: Mapping[str, Any]) -> object:
    """Reasoning and content of a message as one text."""
    thought = message.get("reasoning_content")
    return f"<think>\n{thought}\n</think>\n\n{message['content']}" if thought else message["content"]


def _message(body: Body) -> Body:
    fields = _common(body, "msg_") | {"type": "message", "role": "assistant"}
    if not body["choices"]:
        return fields
    choice = body["choices"][0]
    fields["content"] = list(_blocks(choice["message"]))
    return {**fields, "stop_reason": _STOP_REASONS[choice["finish_reason"]], "stop_sequence": None}


_CHAT_FIELDS = ("id", "object", "created", "choices", "usage")


def _blocks(message: Mapping[str, Any]) -> Iterator[Body]:
    thought, content = message.get("reasoning_content"), message["content"]
    if thought:
        yield {"type": "thinking", "thinking": thought, "signature": "simulated"}
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif content:
        yield from content
    for call in message.get("tool_calls", ()):
        function = call["function"]
        told = json.loads(function["arguments"])
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": told}


def pieces(text: str) -> Iterator[str]:
    """The pieces of a text that is streamed, at most `_MOST_PIECES`."""
    step = max(_SHORTEST_PIECE, -(-len(text) // _MOST_PIECES))
    for start in range(0, len(text), step):
        yield text[start : start + step]


def _chat_events(body: Body) -> Iterator[Event]:
    base = {**_without(body, "choices", "usage"), "object": "chat.completion.chunk"}
    for choice in body["choices"][:1]:
        deltas: list[Body] = [{"role": "assistant", "content": ""}]
        for name in ("reasoning_content", "content"):
            value = choice["message"].get(name)
            bits = pieces(value) if isinstance(value, str) else () if value is None else (value,)
            deltas += [{name: bit} for bit in bits]
        calls = choice["message"].get("tool_calls") or ()
        deltas += [{"tool_calls": bit} for bit in _pieces_of_calls(calls)]
        if choice["message"]["content"] is None:
            deltas[0] = {"role": "assistant"}
        for delta in deltas:
            yield "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            base.pop("padding", None)
        last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield "", {**base, "choices": [last]}
    yield "", {**base, "choices": [], **_only(body, "usage")}
    yield "", _DONE


def _pieces_of_calls(calls: Sequence[Body]) -> Iterator[list[Body]]:
    """Each call begins with its name; what follows has its index and a piece of the arguments."""
    for index, call in enumerate(calls):
        name, told = call["function"]["name"], call["function"]["arguments"]
        yield [{**call, "index": index, "function": {"name": name, "arguments": ""}}]
        for bit in pieces(told):
            yield [{"index": index, "function": {"arguments": bit}}]


def _completion_events(body: Body) -> Iterator[Event]:
    base = _without(body, "choices", "usage")
    for choice in body["choices"][:1]:
        for bit in pieces(choice["text"] or ""):
            yield "", {**base, "choices": [{"index": 0, "text": bit, "finish_reason": None}]}
            base.pop("padding", None)
        yield "", {**base, "choices": [{**choice, "text": ""}]}
    yield "", {**base, "choices": [], **_only(body, "usage")}
    yield "", _DONE


def _message_events(body: Body) -> Iterator[Event]:
    usage = body.get("usage")
    begin = {**_without(body, "usage"), "content": [], "stop_reason": None}
    if usage is not None:
        begin["usage"] = {**usage, "output_tokens": 1}
    yield from _named({"type": "message_start", "message": begin}, {"type": "ping"})
    for index, block in enumerate(body.get("content", ())):
        name = {"thinking": "thinking", "tool_use": "partial_json"}.get(block["type"], "text")
        called = block["type"] == "tool_use"
        empty = {**block, "input": {}} if called else {"type": block["type"], name: ""}
        text = json.dumps(block["input"], ensure_ascii=False) if called else block[name]
        yield from _named({"type": "content_block_start", "index": index, "content_block": empty})
        for bit in pieces(text):
            delta = {"type": "input_json_delta" if called else f"{name}_delta", name: bit}
            yield from _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield from _named({"type": "content_block_stop", "index": index})
    change = {"type": "message_delta", "delta": _only(body, "stop_reason", "stop_sequence")}
    if usage is not None:
        change["usage"] = {"output_tokens": usage["output_tokens"]}
    yield from _named(change, {"type": "message_stop"})


def _named(*events: Body) -> Iterator[Event]:
    for event in events:
        yield event["type"], event


def _without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def _only(body: Body, *names: str) -> Body:
    return {name: body[name] for name in names if name in body}


def _common(body: Body, mark: str) -> Body:
    """What APIs other than OpenAI's older ones have alike: an id that begins with a mark, and tokens by their names."""
    usage = body.get("usage")
    fields = {name: value for name, value in body.items() if name not in _CHAT_FIELDS}
    fields["id"] = str(body["id"]).replace("chatcmpl-", mark)
    if usage is not None:
        fields["usage"] = {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
        }
    return fields


def _response(body: Body) -> Body:
    fields = _common(body, "resp_") | {"object": "response", "error": None}
    if not body["choices"]:
        return fields
    choice = body["choices"][0]
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(choice["finish_reason"])
    fields |= {
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
    }
    return {**fields, "output": list(_items(choice["message"]))}


def _items(message: Mapping[str, Any]) -> Iterator[Body]:
    thought, content = message.get("reasoning_content"), message["content"]
    if thought:
        yield {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": thought}]}
    if content is not None:
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        parts = [{"type": "output_text", "text": text, "annotations": []}]
        yield {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        told = {"name": function["name"], "arguments": function["arguments"]}
        yield {"type": "function_call", "id": "fc_1", "call_id": call["id"], **told}


def _response_events(body: Body) -> Iterator[Event]:
    yield from _named(
        {"type": "response.created", "response": {**body, "status": "in_progress", "output": []}}
    )
    for place, item in enumerate(body.get("output", ())):
        yield from _named(
            {"type": "response.output_item.added", "output_index": place, "item": {"type": item["type"]}}
        )
        kind = {"reasoning": "reasoning_summary_text", "function_call": "function_call_arguments"}.get(
            item["type"], "output_text"
        )
        text = item.get("arguments") or "".join(
            part["text"] for part in item.get("summary", item.get("content", ()))
        )
        for bit in pieces(text):
            yield from _named({"type": f"response.{kind}.delta", "output_index": place, "delta": bit})
    last = "response.incomplete" if body.get("status") == "incomplete" else "response.completed"
    yield from _named({"type": last, "response": body})


CHAT = Form("chat", _same, _chat_events)
COMPLETIONS = Form("completions", _completion, _completion_events)
MESSAGES = Form("messages", _message, _message_events)
RESPONSES = Form("responses", _response, _response_events)
PATHS: Mapping[str, Form] = MappingProxyType(
    {
        "/v1/chat/completions": CHAT,
        "/v1/completions": COMPLETIONS,
        "/v1/messages": MESSAGES,
        "/v1/responses": RESPONSES,
    }
)


def deliver(response: Response, form: Form, *, stream: bool, rule: Rule | None = None) -> Response:
    """A response in the form of an API, streamed where that was asked for.

    A body that is no chat completion, since a fault made something else of it, stays as it is.

    Parameters
    ----------
    response
        A chat completion or an error.
    form
        The API to answer in.
    stream
        Whether to send the reply as events.
    rule
        The fault of one of `STREAM_KINDS` that strikes the stream.
    """
    try:
        body = json.loads(response.body)
    except ValueError:
        return response
    if not isinstance(body, dict):
        return response
    if "error" in body:
        return as_error(response, form)
    body = form.reshape(body)
    if not stream:
        return response._replace(body=json_response(body).body)
    events = [_write(name, data) for name, data in form.events(body)]
    cut = rule.kind if rule is not None else ""
    if cut in ("stream_error", "stream_end"):
        events = events[: len(events) // 2]
    if cut == "stream_error" and rule is not None:
        events.append(_error_event(form, rule.status))
    if cut == "no_done":
        events.pop()
    response = response._replace(body=b"", events=tuple(events), content_type="text/event-stream")
    if cut == "stream_stall":
        return response._replace(body_share=0.5, ending=Ending.HANG)
    return response


def as_error(response: Response, form: Form) -> Response:
    """An error in the form of an API; one whose text is not the simulator's own stays as it is."""
    if form is not MESSAGES or response.content_type != JSON:
        return response
    error = json.loads(response.body).get("error")
    if not isinstance(error, dict) or "param" not in error:
        return response
    return response._replace(body=json_response(_message_error(response.status, str(error["message"]))).body)


def _message_error(status: int, message: str) -> Body:
    kind = _ERROR_KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _error_event(form: Form, status: int) -> bytes:
    message = "a simulated fault"
    if form is MESSAGES:
        return _write("error", _message_error(status, message))
    return _write("", {"error": {"message": message, "type": "simulated", "code": status}})


def _write(name: str, data: object) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
