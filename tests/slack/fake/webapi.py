"""The Web API's door: tokens, encodings, scopes, rates, faults, and the record of every call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.slack.fake import chat, streams, surfaces
from tests.slack.fake.files import Files
from tests.slack.fake.values import APP, Call, Fault, Json, Refused
from tests.slack.fake.world import World

Run = Callable[[World, Json], Json]
NESTED = ("blocks", "metadata", "view", "prompts", "chunks", "loading_messages", "attachments")


@dataclass(frozen=True, slots=True)
class Method:
    """How a method is called. ``takes_json`` is False on reading methods, which do not look into a JSON body."""

    run: Run
    tier: str
    scope: str = ""
    required: tuple[str, ...] = ()
    takes_json: bool = True


METHODS: dict[str, Method] = {
    "agents.sessions.rename": Method(streams.rename_session, "T3", "chat:write", ("channel_id", "title")),
    "agents.sessions.setStatus": Method(streams.session_status, "T3", "chat:write", ("channel_id", "status")),
    "assistant.threads.setStatus": Method(
        streams.thread_status, "T4", "chat:write", ("channel_id", "thread_ts", "status")
    ),
    "assistant.threads.setSuggestedPrompts": Method(
        streams.suggested_prompts, "T4", "assistant:write", ("channel_id", "prompts")
    ),
    "assistant.threads.setTitle": Method(
        streams.thread_title, "T4", "assistant:write", ("channel_id", "thread_ts", "title")
    ),
    "auth.test": Method(surfaces.auth_test, "special", takes_json=False),
    "chat.appendStream": Method(streams.append, "T4", "chat:write", ("channel", "ts")),
    "chat.delete": Method(chat.delete, "T3", "chat:write", ("channel", "ts")),
    "chat.getPermalink": Method(chat.permalink, "special", "", ("channel", "message_ts"), takes_json=False),
    "chat.postEphemeral": Method(chat.post_ephemeral, "T4", "chat:write", ("channel", "user")),
    "chat.postMessage": Method(chat.post_message, "S", "chat:write", ("channel",)),
    "chat.startStream": Method(streams.start, "T2", "chat:write", ("channel",)),
    "chat.stopStream": Method(streams.stop, "T2", "chat:write", ("channel", "ts")),
    "chat.update": Method(chat.update, "T3", "chat:write", ("channel", "ts")),
    "conversations.history": Method(surfaces.history, "T3", "", ("channel",), takes_json=False),
    "conversations.info": Method(surfaces.info, "T3", "", ("channel",), takes_json=False),
    "conversations.open": Method(surfaces.open_conversation, "T3", "im:write", ("users",)),
    "conversations.replies": Method(surfaces.replies, "T3", "", ("channel", "ts"), takes_json=False),
    "reactions.add": Method(surfaces.add_reaction, "T3", "reactions:write", ("channel", "name", "timestamp")),
    "reactions.remove": Method(surfaces.remove_reaction, "T2", "reactions:write", ("channel", "name", "timestamp")),
    "users.info": Method(surfaces.user_info, "T4", "users:read", ("user",), takes_json=False),
    "views.open": Method(surfaces.open_view, "T4", "", ("view",)),
    "views.push": Method(surfaces.push_view, "T4", "", ("view",)),
    "views.update": Method(surfaces.update_view, "T4", "", ("view",)),
}


class WebApi:
    """`ANY /api/{method}`."""

    def __init__(self, world: World, files: Files, open_link: Callable[[], str]) -> None:
        self.world = world
        self._open_link = open_link
        self.methods = {
            **METHODS,
            "files.info": Method(files.info, "T4", "files:read", ("file",), takes_json=False),
            "apps.connections.open": Method(self._open, "special", takes_json=False),
        }

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One call: its faults first, then its answer."""
        name = request.match_info["method"]
        args, encoding = await self._args(request, name)
        fault = self._fault(name)
        if fault is not None:
            if fault.latency_s:
                await asyncio.sleep(fault.latency_s)
            if fault.drop == "before":
                return self._dropped(request)
            if fault.status != 200 or fault.error is not None:
                return self._faulty(name, args, encoding, fault)
        status, body = self._called(request, name, args)
        self._keep(name, args, encoding, status, body)
        if fault is not None and fault.drop == "after":
            return self._dropped(request)
        return self._answer(request, status, body)

    async def _args(self, request: web.Request, name: str) -> tuple[Json, str]:
        """Query, form and (where the method looks at it) JSON, as one mapping; unknown ones stay."""
        args: Json = dict(request.query)
        encoding = "query"
        if request.content_type == "application/json":
            encoding = "json"
            method = self.methods.get(name)
            try:
                body = json.loads(await request.read() or b"{}")
            except ValueError:
                body = None
            if isinstance(body, dict) and (method is None or method.takes_json):
                body.pop("token", None)
                args.update(body)
        else:
            form = {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
            if form:
                encoding = "form"
            args.update(form)
            for key in NESTED:
                if isinstance(args.get(key), str):
                    try:
                        args[key] = json.loads(args[key])
                    except ValueError:
                        continue
        return args, encoding

    def _called(self, request: web.Request, name: str, args: Json) -> tuple[int, Json]:
        try:
            self._authenticate(request, name, args)
            method = self.methods.get(name)
            if method is None:
                raise Refused("unknown_method")
            self._permit(request, name, method, args)
            wait = self.world.wait_for(name, method.tier, str(args.get("channel", "")))
            if wait:
                self.world.refuse(name, "ratelimited", f"wait {wait} s")
                return 429, {"ok": False, "error": "ratelimited", "wait": wait}
            return 200, {"ok": True, **method.run(self.world, args)}
        except Refused as refused:
            self.world.refuse(name, refused.error, "; ".join(refused.messages))
            return 200, refused.answer()

    def _authenticate(self, request: web.Request, name: str, args: Json) -> None:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token if kind == "Bearer" else str(args.get("token", ""))
        args.pop("token", None)
        if not token:
            raise Refused("not_authed")
        wants_app = name == "apps.connections.open"
        right, wrong = (self.world.app_token, self.world.bot_token)[:: 1 if wants_app else -1]
        if token == right:
            return
        raise Refused("not_allowed_token_type" if token == wrong else "invalid_auth")

    def _permit(self, request: web.Request, name: str, method: Method, args: Json) -> None:
        if method.scope and method.scope not in self.world.scopes:
            provided = ",".join(sorted(self.world.scopes))
            raise Refused("missing_scope", needed=method.scope, provided=provided)
        if name == "apps.connections.open" and request.method != "POST":
            raise Refused("insecure_request")
        for field in method.required:
            if args.get(field) is None or (args[field] == "" and field != "status"):
                raise Refused("invalid_arguments", f"missing required field: {field}")

    def _open(self, world: World, args: Json) -> Json:
        return {"url": f"{self._open_link()}&app_id={APP}"}

    def _fault(self, name: str) -> Fault | None:
        """The next fault of a method, used up."""
        waiting = self.world.faults[name]
        if not waiting:
            return None
        fault = waiting[0]
        if fault.times is not None:
            waiting[:1] = [_once_less(fault)] if fault.times > 1 else []
        return fault

    def _faulty(self, name: str, args: Json, encoding: str, fault: Fault) -> web.Response:
        if fault.error is not None:
            body: Json = {"ok": False, "error": fault.error}
            self._keep(name, args, encoding, 200, body)
            return web.json_response(body, headers=self._headers(name))
        if fault.status == 429:
            body = {"ok": False, "error": "ratelimited"}
            self._keep(name, args, encoding, 429, body)
            return web.json_response(body, status=429, headers={"Retry-After": str(fault.retry_after)})
        self._keep(name, args, encoding, fault.status, {})
        page = f"<html><body><h1>{fault.status}</h1>Slack is having trouble</body></html>"
        return web.Response(status=fault.status, text=page, content_type="text/html")

    def _answer(self, request: web.Request, status: int, body: Json) -> web.Response:
        headers = self._headers(request.match_info["method"])
        if status == 429:
            headers["Retry-After"] = str(body.pop("wait"))
        return web.json_response(body, status=status, headers=headers)

    def _headers(self, name: str) -> dict[str, str]:
        granted = {"connections:write"} if name == "apps.connections.open" else self.world.scopes
        return {"x-oauth-scopes": ",".join(sorted(granted))}

    def _dropped(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.close()
        return web.Response()

    def _keep(self, name: str, args: Json, encoding: str, status: int, body: Any) -> None:
        call = Call(
            method=name, args=args, encoding=encoding, at=self.world.clock.now(), status=status, answer=dict(body)
        )
        self.world.calls.append(call)
        self.world.notify()


def _once_less(fault: Fault) -> Fault:
    return Fault(
        latency_s=fault.latency_s,
        status=fault.status,
        retry_after=fault.retry_after,
        error=fault.error,
        drop=fault.drop,
        times=None if fault.times is None else fault.times - 1,
    )
