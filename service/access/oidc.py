"""Sign-in to the pages at an identity provider: OpenID Connect, authorization code with PKCE, by Authlib.

The library checks state, nonce and the signature of the ID token. What it must remember until the browser comes back is
in a signed cookie of ten minutes.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainmedic.service.access.cookies import BEGIN, CALLBACK, full_name, own_path
from trainmedic.service.access.principals import Principal, user_id
from trainmedic.service.settings import Settings, listed

COOKIE = "trainmedic_signin"
REMEMBERED_S = 600
TIMEOUT_S = 10.0
SCOPES = "openid profile email"
GROUPS = "groups"
"""The claim that lists a user's groups, and the scope that some providers want for it."""
NAMES = ("preferred_username", "email", "name")
"""Claims that name a user in the audit log, the first that there is."""
SignedIn = Callable[[Request, Principal, str], Awaitable[Response]]
"""Makes the response for somebody who has signed in, with the path where they wanted to go."""
Failed = Callable[[Request, str], Awaitable[Response]]
"""Makes the response for somebody who has not, with the name of the text that says why."""
log = logging.getLogger("trainmedic.signin")


class NotAdmitted(Exception):
    """The provider knows the user, but none of their groups may use the service."""


class OidcSignIn:
    """What is served below `SIGN_IN`."""

    def __init__(self, settings: Settings, signed_in: SignedIn, failed: Failed) -> None:
        from authlib.integrations.starlette_client import OAuth  # 0.2 s, for the few that have a provider

        self._settings = settings
        self._signed_in = signed_in
        self._failed = failed
        self._issuer = settings.oidc.issuer.rstrip("/")
        self._home = settings.public_url.rstrip("/")
        secret = settings.oidc.client_secret.get_secret_value()
        self._client = OAuth().register(
            "provider",
            client_id=settings.oidc.client_id,
            client_secret=secret or None,
            server_metadata_url=f"{self._issuer}/.well-known/openid-configuration",
            client_kwargs={
                "scope": SCOPES,
                "code_challenge_method": "S256",
                "timeout": TIMEOUT_S,
                **({} if secret else {"token_endpoint_auth_method": "none"}),
            },
        )
        # The same on all replicas, as the browser may come back to another one.
        signing = hmac.new(secret.encode(), b"trainmedic sign-in", hashlib.sha256).hexdigest() if secret else ""
        secure = self._home.startswith("https://")
        session = Middleware(
            SessionMiddleware,
            secret_key=signing or secrets.token_urlsafe(32),
            session_cookie=full_name(COOKIE, secure=secure),
            max_age=REMEMBERED_S,
            same_site="lax",  # the provider's redirect comes from another site
            https_only=secure,
        )
        self.app = Starlette(routes=[Route(BEGIN, self._begin), Route(CALLBACK, self._finish)], middleware=[session])

    async def _begin(self, request: Request) -> Response:
        request.session.clear()
        request.session["next"] = own_path(request.query_params.get("next", "/"))
        try:
            provider = await self._client.load_server_metadata()
            scope = f"{SCOPES} {GROUPS}" if GROUPS in provider.get("scopes_supported", ()) else SCOPES
            response = await self._client.authorize_redirect(request, f"{self._home}{CALLBACK}", scope=scope)
        except Exception as error:  # the errors of whichever HTTP client the library has found
            log.warning("the identity provider cannot be reached: %s", type(error).__name__)
            return await self._failed(request, "oidc_unreachable")
        assert isinstance(response, Response)
        return response

    async def _finish(self, request: Request) -> Response:
        target = own_path(str(request.session.get("next", "/")))
        try:
            token = await self._client.authorize_access_token(request)
            principal = self._principal(await self._claims(token))
        except NotAdmitted:
            return await self._failed(request, "oidc_not_admitted")
        except Exception as error:
            # Whatever is wrong with an answer of the provider, nobody is signed in. Without the error's message, which
            # may hold what the browser sent.
            log.warning("a sign-in failed: %s", type(error).__name__)
            return await self._failed(request, "oidc_failed")
        request.session.clear()
        return await self._signed_in(request, principal, target)

    async def _claims(self, token: Mapping[str, Any]) -> Mapping[str, Any]:
        """The claims of the verified ID token; groups that it lacks are asked for."""
        claims = dict(token["userinfo"])
        if str(claims["iss"]).rstrip("/") != self._issuer:
            raise ValueError("the ID token is of another issuer")
        if GROUPS in claims or not (self._settings.oidc.groups or self._settings.oidc.admin_groups):
            return claims
        more = await self._client.userinfo(token=token)
        if more.get("sub") != claims["sub"]:
            raise ValueError("the user's claims are of another user")
        return {**more, **claims}

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        """Who the claims stand for. Raises `NotAdmitted`."""
        groups = groups_of(claims.get(GROUPS))
        allowed, admins = set(listed(self._settings.oidc.groups)), set(listed(self._settings.oidc.admin_groups))
        if allowed and not groups & (allowed | admins):
            raise NotAdmitted
        name = next((str(claims[claim]) for claim in NAMES if claims.get(claim)), "")
        return Principal(
            id=user_id(self._issuer, str(claims["sub"])),
            name=name,
            scope="admin" if groups & admins else "ask",
        )

    async def end_url(self) -> str:
        """Where a user signs out at the provider; empty if it has no such page."""
        try:
            metadata = await self._client.load_server_metadata()
        except Exception:  # signing out here must work without the provider
            return ""
        end = str(metadata.get("end_session_endpoint") or "")
        fields = {"client_id": self._settings.oidc.client_id, "post_logout_redirect_uri": f"{self._home}/"}
        return f"{end}{'&' if '?' in end else '?'}{urlencode(fields)}" if end else ""


def groups_of(claim: object) -> frozenset[str]:
    """The groups in a claim: a list, or one text with blanks or commas between them."""
    if isinstance(claim, str):
        return frozenset(claim.replace(",", " ").split())
    return frozenset(str(group) for group in claim) if isinstance(claim, Iterable) else frozenset()
