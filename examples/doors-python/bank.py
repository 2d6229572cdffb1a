"""Endpoints of a bank that only its customers' phones can use: signed, with a token, encrypted. pawl judges each request (docs/DOORS.md).

PAWL_URL=http://127.0.0.1:8080 BANK='web-tier:THE-PASSWORD' uvicorn bank:app --port 8090
"""

import asyncio
import base64
import json
import logging
import os
import re
import secrets
from typing import Annotated, NamedTuple

import httpx
from fastapi import Depends, FastAPI, HTTPException, Request

BODY_BYTES_MAX = 131_072  # pawl judges no larger one
QUERY_MAX = 16_384  # pawl reads no longer query
SECONDS = 2  # for each of two attempts
log = logging.getLogger("uvicorn.error")
app = FastAPI()
# httpx checks the certificate of an https address, and follows no redirect.
pawl = httpx.AsyncClient(base_url=os.environ["PAWL_URL"], auth=tuple(os.environ["BANK"].split(":", 1)), timeout=SECONDS)


class Caller(NamedTuple):
    user_id: str
    body: bytes  # what the code covers: parse this, and nothing else of the request


async def ask(door: str, call: dict) -> dict:
    """What pawl answers. Without an answer nobody knows whether the request is genuine: the phone is told 503, and no handler runs."""
    # Each request of a phone gets one key. The second attempt has the same key, so a code whose answer was lost is not judged twice.
    key = {"Idempotency-Key": secrets.token_hex(16)}
    for _ in range(2):
        try:
            reply = await asyncio.wait_for(pawl.post(door, json=call, headers=key), SECONDS)
            if reply.status_code == 200 and isinstance(answer := reply.json(), dict):
                return answer
            log.error("pawl answered %s with %s: %s", door, reply.status_code, reply.text[:500])
            if 400 <= reply.status_code < 500 and reply.status_code != 429:
                break  # this call is wrong, and would be again
        except (httpx.HTTPError, asyncio.TimeoutError, ValueError) as error:
            log.error("no answer of %s: %r", door, error)
    raise HTTPException(503, "unavailable")


def refuse(reason: object) -> HTTPException:
    """Gives the same answer for all reasons. Only the log of the bank has the reason."""
    log.warning("refused a phone: %s", reason)
    return HTTPException(401, "refused")


def user_of(verdict: dict) -> str:
    if verdict.get("isValid") is not True:
        raise refuse(verdict.get("reason"))
    return verdict["userId"]


def header(request: Request, kind: str) -> str:
    """The protocol header, which apps name in one of two ways. A request with two values counts as one without the header."""
    values = {value for name in ("powerauth", "svc") for value in request.headers.getlist(f"x-{name}-{kind}")}
    if len(values) != 1 or not 0 < len(value := values.pop()) <= 4_096:
        raise refuse("no header")
    return value


def client(request: Request) -> dict:
    """The phone's address. Behind a proxy: uvicorn --proxy-headers --forwarded-allow-ips THE-PROXY, or all phones count as one."""
    return {"address": request.client.host, "userAgent": request.headers.get("user-agent", "")[:255]}


async def read(request: Request) -> bytes:
    """The unparsed bytes of the body."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413, "too large")
    return bytes(body)


def signed(resource_id: str):
    """For endpoints that write. `resource_id` is a constant that app and bank agreed on. It must not come from the phone."""

    async def check(request: Request) -> Caller:
        # The unparsed query, because the query that a framework has parsed may differ from it.
        body, query = await read(request), request.scope["query_string"].decode("latin-1")
        if len(query) > QUERY_MAX:
            raise refuse("a query that no code stands for")
        verdict = await ask("/verification/code", {
            "authorization": header(request, "authorization"),
            "method": request.method,
            "resourceId": resource_id,
            "body": base64.b64encode(body).decode(),
            "query": query,
            "client": client(request),
        })
        user_id = user_of(verdict)
        # A code covers the body or the query. Anybody could change the other one, so there must not be any.
        if query if verdict.get("covered") == "BODY" else body:
            raise refuse("something that the code does not cover")
        return Caller(user_id, body)

    return Depends(check)


async def with_token(request: Request) -> str:
    """For reads only: a token covers no part of the request, so somebody who saw it may send it with another request."""
    factors = ["POSSESSION", "POSSESSION_KNOWLEDGE", "POSSESSION_BIOMETRY"]
    call = {"token": header(request, "token"), "isRepeatable": True, "factors": factors, "client": client(request)}
    return user_of(await ask("/verification/token", call))


@app.post("/transfer")
async def transfer(caller: Annotated[Caller, signed("/transfer")]):
    try:
        amount = json.loads(caller.body)["amount"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HTTPException(400, "amount") from None
    return {"from": caller.user_id, "amount": amount}


@app.get("/accounts")
async def accounts(user_id: Annotated[str, Depends(with_token)]):
    return {"of": user_id, "accounts": ["DE89370400440532013000"]}


def is_member(name: str, value: object) -> bool:
    """Members of every envelope are words with Base64 or a number. pawl would answer others as a mistake of the bank."""
    is_right = type(value) is int or isinstance(value, str) and re.fullmatch("[ -~]*", value)
    return bool(is_right and re.fullmatch("[a-zA-Z]+", name))


@app.post("/statement")
async def statement(request: Request):
    """Nothing between the app and this process can read an envelope. It proves no PIN, so it is for reads only."""
    try:
        envelope = json.loads(await read(request))
        if not all(is_member(name, value) for name, value in envelope.items()):
            raise ValueError
    except (ValueError, AttributeError, RecursionError):
        raise refuse("no envelope") from None
    encryption = header(request, "encryption")
    call = {"scope": "ACTIVATION", "encryption": encryption, "envelope": envelope, "client": client(request)}
    opened = await ask("/encryption/open", call)
    if opened.get("isOpened") is not True:
        raise refuse(opened.get("reason"))
    try:
        month = json.loads(base64.b64decode(opened["plaintext"]))["month"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HTTPException(400, "month") from None
    answer = json.dumps({"of": opened["userId"], "month": month, "lines": []})
    # One ticket seals one answer, so it is complete by now.
    return await ask("/encryption/seal", {
        "sealTicket": opened["sealTicket"],
        "plaintext": base64.b64encode(answer.encode()).decode(),
    })
