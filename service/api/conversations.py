"""The caller's own conversations: listed, read and deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from trainmedic.kb.errors import Forbidden
from trainmedic.service.access.gate import from_this_machine
from trainmedic.service.access.principals import ANYBODY, Principal
from trainmedic.service.answering import Executor
from trainmedic.service.api.resources import (
    ConversationDocument,
    ConversationPage,
    ConversationSummary,
    ConversationTurn,
)
from trainmedic.service.storage.memory import Memory

ConversationId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]


def principal_of(request: Request) -> Principal:
    """Who sends a request, as the gate found out."""
    principal = getattr(request.state, "principal", ANYBODY)
    assert isinstance(principal, Principal)
    return principal


def add_conversation_routes(router: APIRouter, memory: Memory, run: Executor) -> None:
    @router.get("/conversations")
    async def list_conversations(request: Request, offset: Offset = 0, limit: Limit = 50) -> ConversationPage:
        """The conversations of this key, the latest first."""
        owner = principal_of(request).id
        listed = await run(lambda: memory.conversations(owner, offset, limit))
        return ConversationPage(items=tuple(map(ConversationSummary.of, listed)), offset=offset)

    @router.get("/conversations/{conversation_id}")
    async def read_conversation(
        conversation_id: ConversationId, request: Request, offset: Offset = 0, limit: Limit = 50
    ) -> ConversationDocument:
        """List the questions of a conversation of this key, oldest first; `/v1/answers/{answer_id}` has the answers.

        404 if it is unknown or another key's.
        """
        owner = principal_of(request).id
        turns = await run(lambda: memory.past_turns(conversation_id, owner, offset, limit))
        return ConversationDocument(id=conversation_id, items=tuple(map(ConversationTurn.of, turns)), offset=offset)

    @router.delete("/conversations/{conversation_id}", status_code=204, response_class=Response)
    async def delete_conversation(conversation_id: ConversationId, request: Request) -> None:
        """Delete a conversation with its answers, its feedback and the copies that were made from its links.

        404 if it is unknown or another key's; an administrator deletes anyone's. Without keys, only from the machine
        of the service: everyone's conversations are no one's, and whoever has a link knows their ids.
        """
        principal = principal_of(request)
        if not principal.id and not from_this_machine(request.scope):
            raise Forbidden("without a key, conversations are deleted from the service's own machine")
        owner = None if principal.may("admin") else principal.id
        await run(lambda: memory.delete_conversation(conversation_id, owner))
