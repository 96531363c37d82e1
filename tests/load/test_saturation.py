"""More questions than the service can answer, for minutes: it answers or says when to come again, and stays as it was.

``LOAD_SECONDS`` is how long (60). The figures are printed with ``-s``.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, quantiles

import httpx

from tests.incidents import INCIDENTS, TRL_COMMAND, TRL_LOG
from tests.load.service import PATIENCE_S, Service
from trainmedic.kb.store.embedder import OnnxEmbedder
from trainmedic.service.storage.history import History

SECONDS = float(os.environ.get("LOAD_SECONDS", "60"))
CLIENTS = 24
QUESTIONS = tuple(
    {"question": question, "attachments": [{"name": f.name, "content": str(f.content)} for f in incident.files]}
    for incident in INCIDENTS
    for question in (incident.en, incident.zh)
)
ALONE = ({"question": "loss is nan from the first step"}, {"question": "训练到一半 loss 突然变成 nan"})
CHECK = {"attachments": [{"name": "train.sh", "content": TRL_COMMAND}, {"name": "train.log", "content": TRL_LOG}]}


@dataclass
class Record:
    """What the clients saw, and what they may rely on."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    unnamed: list[int] = field(default_factory=list)
    """Statuses of refusals that do not say when to try again."""
    answers: list[str] = field(default_factory=list)


async def client(number: int, url: str, record: Record, end: float) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as http:
        turn = number
        while time.monotonic() < end:
            turn += 1
            began = time.monotonic()
            if turn % 5 == 0:
                response = await http.post("/v1/check", json=CHECK)
            elif turn % 3 == 0:
                response = await http.post("/v1/ask", json=QUESTIONS[turn % len(QUESTIONS)])
            else:
                response = await http.post("/v1/ask", json=ALONE[turn % len(ALONE)])
            record.statuses[response.status_code] += 1
            if response.status_code == 200:
                record.seconds.append(time.monotonic() - began)
                if "conversation_id" in response.json():
                    record.answers.append(response.json()["id"])
            elif "retry-after" in response.headers:
                await asyncio.sleep(float(response.headers["retry-after"]))
            else:
                record.unnamed.append(response.status_code)


async def memory(service: Service, samples: list[float], end: float) -> None:
    while time.monotonic() < end:
        samples.append(service.memory_mb())
        await asyncio.sleep(1)


def ceiling() -> float:
    """Questions per second that the encoder alone embeds, one after the other."""
    embedder, count = OnnxEmbedder(), 0
    embedder.embed_query("loss is nan")
    began = time.monotonic()
    while time.monotonic() - began < 3:
        embedder.embed_query(str(ALONE[count % 2]["question"]) + f" at step {count}")
        count += 1
    return count / (time.monotonic() - began)


def test_under_saturation_every_question_is_answered_or_told_when_to_come_again(start: Callable[..., Service]) -> None:
    alone = ceiling()
    service = start(rate_limit="1000000/minute", rate_limit_ask="1000000/minute")
    record = Record()
    samples: list[float] = []
    url = f"http://127.0.0.1:{service.port}"

    async def load() -> None:
        end = time.monotonic() + SECONDS
        await asyncio.gather(
            *(client(number, url, record, end) for number in range(CLIENTS)), memory(service, samples, end)
        )

    asyncio.run(load())
    rate, hundredths = len(record.seconds) / SECONDS, quantiles(record.seconds, n=100)
    fifth = max(1, len(samples) // 5)
    early, late = fmean(samples[fifth : 2 * fifth]), fmean(samples[-fifth:])
    p50, p95, p99 = (hundredths[n - 1] * 1000 for n in (50, 95, 99))
    sys.stdout.write(
        f"\n{CLIENTS} clients, {SECONDS:.0f} s: {rate:.1f} answers/s, {rate / alone:.2f} of what the encoder embeds\n"
        f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms; statuses {dict(record.statuses)}\n"
        f"memory {early:.0f} MB after a fifth, {late:.0f} MB at the end\n"
    )
    assert set(record.statuses) <= {200, 429, 503}
    assert record.unnamed == []
    assert late < 1.15 * early
    stored = History(f"sqlite:///{service.data / 'history.sqlite3'}")
    assert len(record.answers) > SECONDS
    assert [id for id in record.answers if stored.stored_answer(id) is None] == []
    stored.close()
