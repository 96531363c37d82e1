"""What each source makes of its exports: whole ones, malformed ones, and what changed since the last run."""

from __future__ import annotations

import io
import json
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.conftest import LOOPBACK
from trainmedic.ingest.items import Checkpoint, Discussion, Failure, Gone, Item, Options, Raw
from trainmedic.ingest.read.files import File, files
from trainmedic.ingest.sources import names, recognised, source, web
from trainmedic.ingest.sources import read as read_source
from trainmedic.ingest.sources.web import read as read_web


def read(kind: str, path: Path, since: str = "") -> list[Item]:
    return list(source(kind)(Options(location=str(path), since=since)))


def discussions(items: list[Item]) -> list[Discussion]:
    return [item for item in items if isinstance(item, Discussion)]


def failures(items: list[Item]) -> list[Failure]:
    return [item for item in items if isinstance(item, Failure)]


def put(root: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return root


def zipped(root: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(root).as_posix())
    return target


def said(ts: str, user: str, text: str, **more: object) -> dict[str, object]:
    return {"type": "message", "ts": ts, "user": user, "text": text, **more}


SLACK = {
    "channels.json": [{"id": "C1", "name": "training"}],
    "users.json": [{"id": "U1", "name": "ann"}],
    "training/2026-03-01.json": [
        said("1772000000.1", "U1", "<@U2> GRPO hangs &amp; nothing in the log", thread_ts="1772000000.1"),
        said("1772000001.1", "U9", "good morning"),
        said("1772000002.1", "U3", "bot noise", thread_ts="1772000000.1", bot_id="B1"),
        {"type": "message", "subtype": "channel_join", "ts": "1772000003.1", "user": "U4", "text": "joined"},
    ],
    "training/2026-03-02.json": [
        said(
            *("1772086400.1", "U2", "Set NCCL_IB_DISABLE, see <https://e.org/x|the notes>"),
            thread_ts="1772000000.1",
            reactions=[{"name": "white_check_mark", "users": ["U1"], "count": 1}],
        ),
        said("1772086401.1", "U1", "that helped, thanks", thread_ts="1772000000.1"),
        said("1772086402.1", "U1", "a reply to something older", thread_ts="1770000000.1"),
    ],
}


@pytest.mark.parametrize("packed", [False, True])
def test_a_slack_thread_is_one_discussion_over_days_with_the_checked_reply_as_its_answer(
    tmp_path: Path, packed: bool
) -> None:
    root = put(tmp_path / "export", dict(SLACK))
    location = zipped(root, tmp_path / "export.zip") if packed else root
    (thread,) = discussions(read("folder", location))
    assert thread.title == "@someone GRPO hangs & nothing in the log"
    assert [(message.role, message.accepted) for message in thread.messages] == [
        ("reporter", False),
        ("other", True),
        ("reporter", False),
    ]
    assert thread.messages[1].text == "Set NCCL_IB_DISABLE, see [the notes](https://e.org/x)"
    assert (thread.resolved, thread.updated[:10], thread.key) == (True, "2026-02-26", "training/1772000000.1")


CHAT = """#train-help
Jane Miller  10:12 AM
anyone seen this? DPO hangs after "Running training"
10:13
two nodes, accelerate launch
Tom  10:34 AM
is the cache of the datasets node-local?
Jane Miller  10:58 AM
:white_check_mark: that was it, thanks Tom. A shared HF_DATASETS_CACHE helps.
"""


def test_a_chat_that_was_copied_as_text_is_a_thread_with_its_answer(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text(CHAT)
    (tmp_path / "notes.txt").write_text("Timeline\nJane restarted it at\n10:12\nand again at\n10:40\n")
    thread, notes = read_source("folder", Options(location=str(tmp_path)))
    assert isinstance(notes, Raw)
    assert isinstance(thread, Discussion)
    assert (thread.title, thread.resolved, thread.team) == (
        'anyone seen this? DPO hangs after "Running training"',
        True,
        True,
    )
    assert [(message.role, message.accepted) for message in thread.messages] == [
        ("reporter", False), ("reporter", False), ("other", False), ("reporter", True),
    ]  # fmt: skip
    assert thread.messages[3].text == "that was it, thanks xxx. A shared HF_DATASETS_CACHE helps."


def test_comments_of_the_rest_api_are_a_thread_of_each_issue_beside_the_issue(tmp_path: Path) -> None:
    def comment(issue: int, body: str) -> dict[str, object]:
        return {
            "issue_url": f"https://api.github.com/repos/o/n/issues/{issue}",
            "html_url": f"https://github.com/o/n/issues/{issue}#issuecomment-1",
            "user": {"login": "jane"},
            "author_association": "MEMBER",
            "body": body,
            "updated_at": f"2025-06-0{issue}T00:00:00Z",
        }

    listed = [comment(1, "The tokenizer moved.\nPin it."), comment(2, "me too"), comment(1, "Confirmed, works now.")]
    (tmp_path / "comments.json").write_text(json.dumps(listed))
    first, second = read_source("folder", Options(location=str(tmp_path)))
    assert isinstance(first, Discussion)
    assert isinstance(second, Discussion)
    assert (first.title, first.url, first.key) == (
        "o/n#1: The tokenizer moved.", "https://github.com/o/n/issues/1", "https://github.com/o/n/issues/1#comments"
    )  # fmt: skip
    assert [message.role for message in first.messages] == ["reporter", "maintainer", "maintainer"]
    assert second.updated == "2025-06-02T00:00:00Z"


def test_a_broken_day_of_slack_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    files = {**SLACK, "training/2026-03-03.json": "{not json", "training/2026-03-04.json": {"a": 1}}
    files["training/2026-03-05.json"] = [17, {"type": "message", "text": None}, said("x", "U1", "odd time")]
    items = read("folder", put(tmp_path, dict(files)))
    assert [failure.origin for failure in failures(items)] == ["training/2026-03-03.json", "training/2026-03-04.json"]
    assert len(discussions(items)) == 1


def test_a_folder_is_read_with_all_that_is_in_it(tmp_path: Path) -> None:
    issue = {
        "title": "loss is nan",
        "body": "why?",
        "comments": [{"body": "bf16", "isAnswer": True}],
        "state": "CLOSED",
    }
    put(tmp_path / "chat", dict(SLACK))
    put(
        tmp_path,
        {"post.md": "# A\n\nText.", "gh/issues.json": [issue], "package.json": {"name": "x"}, "run.py": "pass"},
    )
    items = read("folder", tmp_path)
    assert [thread.title[:8] for thread in discussions(items)] == ["@someone", "loss is "]
    assert [thread.team for thread in discussions(items)] == [True, False]
    assert [item.origin for item in items if isinstance(item, Raw)] == ["post.md"]
    assert [failure.origin for failure in failures(items)] == ["package.json", "run.py"]


def test_an_address_of_github_is_a_repository_and_a_missing_path_a_folder() -> None:
    kinds = {
        "https://github.com/o/n": "github",
        "https://github.com/o/n/issues": "github",
        "https://github.com/o/n/issues/7": "web",
        "posts/2026": "folder",
    }
    assert {location: recognised(location) for location in kinds} == kinds


def test_json_lines_are_write_ups_or_discussions_and_a_broken_line_is_named(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": 1, "title": "NaN", "text": "It was fp16.", "updated": "2026-01-02"}),
        json.dumps({"title": "Hang", "text": "stuck", "resolution": "Upgrade NCCL.", "url": "https://e.org/1"}),
        json.dumps({"title": "x", "messages": [{"role": "maintainer", "text": "y"}, 3]}),
        "{broken",
        "[1]",
        '{"title": "only a title"}',
    ]
    items = read("folder", put(tmp_path, {"a.jsonl": "\n".join(lines)}))
    raw, hang, other = items[:3]
    assert isinstance(raw, Raw)
    assert isinstance(hang, Discussion)
    assert isinstance(other, Discussion)
    assert (raw.key, hang.key, hang.resolved, other.messages[0].role) == ("1", "https://e.org/1", True, "maintainer")
    assert [failure.origin for failure in failures(items)] == ["a.jsonl:4", "a.jsonl:5", "a.jsonl:6"]


@pytest.mark.parametrize("field", ["text", "body"])
def test_a_line_of_json_ends_only_where_the_line_ends(field: str, tmp_path: Path) -> None:
    items = [{"id": name, "title": "loss\u2028nan", field: "one\u2029two"} for name in "12"]
    text = "\r\n".join(json.dumps(item, ensure_ascii=False) for item in items)
    assert not isinstance(read("folder", put(tmp_path, {"a.jsonl": text}))[0], Failure)


@pytest.mark.parametrize("packed", [False, True])
def test_of_a_huge_line_and_a_damaged_end_the_place_is_named(packed: bool, tmp_path: Path) -> None:
    root = put(tmp_path / "in", {"a.jsonl": "x" * 20 + "\n\nfine\n" + "y" * 11})
    file = next(files(str(zipped(root, tmp_path / "a.zip") if packed else root)))
    assert isinstance(file, File)
    read = list(file.lines(10))
    assert [item.origin if isinstance(item, Failure) else item for item in read] == [
        f"{file.origin}:1",
        (f"{file.origin}:3", b"fine\n"),
        f"{file.origin}:4",
    ]


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = put(tmp_path, {"a.jsonl": '{"id": 1, "title": "x", "text": "y"}\n'}) / "a.jsonl"
    items = source("folder")(Options(location=str(path)))
    next(items)
    with path.open("a") as stream:
        stream.write('{"id": 2, "title": "x", "text": "written meanwhile"}\n')
    assert [item.key for item in items if isinstance(item, Raw)] == ["2"]


class Site(httpx.MockTransport):
    """A web site of two pages, of which one can be changed or taken away."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, str, str]] = {
            "/a": (200, "text/html", "<h1>A</h1><p>one</p>"),
            "/b": (200, "text/plain", "b"),
        }
        self.unchanged = 0
        super().__init__(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/down":
            raise httpx.ConnectError("refused")
        status, kind, text = self.pages.get(request.url.path, (404, "text/html", ""))
        etag = f'"{hash(text)}"'
        if request.headers.get("if-none-match") == etag and status == 200:
            self.unchanged += 1
            return httpx.Response(304)
        return httpx.Response(status, headers={"content-type": kind, "etag": etag}, text=text)


def test_a_page_is_fetched_again_only_if_it_changed_and_forgotten_when_it_is_gone(tmp_path: Path) -> None:
    site = Site()
    listed = (
        put(tmp_path, {"pages.txt": "https://e.org/a\n# note\nhttps://e.org/b\nhttps://e.org/down\n"}) / "pages.txt"
    )
    first = list(read_web(Options(location=str(listed)), site))
    assert [item.url for item in first if isinstance(item, Raw)] == ["https://e.org/a", "https://e.org/b"]
    assert [failure.origin for failure in failures(first)] == ["https://e.org/down"]
    mark = [item.value for item in first if isinstance(item, Checkpoint)][-1]
    site.pages["/b"] = (410, "text/plain", "")
    again = list(read_web(Options(location=str(listed), since=mark), site))
    assert (site.unchanged, [item for item in again if isinstance(item, Raw)]) == (1, [])
    assert [item.key for item in again if isinstance(item, Gone)] == ["https://e.org/b"]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ((500, "text/html", ""), "the server answers 500"),
        ((200, "application/pdf", "%PDF"), "pages of this kind are not read: application/pdf"),
        ((200, "text/plain", "x" * 10_485_761), "larger than 10 MiB"),
    ],
)
def test_a_page_that_cannot_be_read_says_why(page: tuple[int, str, str], reason: str) -> None:
    site = Site()
    site.pages["/a"] = page
    assert [failure.reason for failure in failures(list(read_web(Options(location="https://e.org/a"), site)))] == [
        reason
    ]


class Server(ThreadingHTTPServer):
    """Answers by path, on an address of this machine: (status, target of a redirect, text)."""

    def __init__(self, address: str, pages: dict[str, tuple[int, str, str]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                status, target, text = pages[self.path]
                self.send_response(status)
                self.send_header("Location", target)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                with suppress(OSError):
                    for letter in text:
                        self.wfile.write(letter.encode())
                        self.wfile.flush()
                        time.sleep(0.2 if self.path == "/drips" else 0)

            def log_message(self, *_: object) -> None:
                pass

        asked = self.asked = list[str]()
        super().__init__((address, 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_port}{path}"


@pytest.fixture
def inner() -> Iterator[Server]:
    with Server("127.0.0.1", {"/secret": (200, "", "INTERNAL")}) as server:
        yield server
        server.shutdown()


@pytest.fixture
def outer(inner: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose address counts as one of the internet."""
    pages = {
        "/to-inner": (302, inner.url("/secret"), ""),
        "/to-name": (302, inner.url("/secret").replace("127.0.0.1", "localhost"), ""),
        "/twice": (302, "/to-inner", ""),
        "/moved": (302, "/page", ""),
        "/page": (200, "", "hello"),
        "/round": (302, "/round", ""),
        "/drips": (200, "", "hello" * 100),
    }
    monkeypatch.setattr("tests.conftest.LOOPBACK", (*LOOPBACK, "127.0.0.2"))
    is_public = web.is_public
    monkeypatch.setattr(web, "is_public", lambda address: address == "127.0.0.2" or is_public(address))
    with Server("127.0.0.2", pages) as server:
        server.daemon_threads = True
        yield server
        server.shutdown()


def fetched(server: Server, path: str, *, internal: bool = False) -> Item:
    return next(iter(read_web(Options(location=server.url(path), internal=internal))))


@pytest.mark.parametrize("path", ["/to-inner", "/to-name", "/twice"])
def test_a_public_page_does_not_lead_into_this_network_unless_that_is_allowed(
    outer: Server, inner: Server, path: str
) -> None:
    refused = fetched(outer, path)
    assert isinstance(refused, Failure)
    assert "which is internal" in refused.reason
    assert inner.asked == []
    allowed = fetched(outer, path, internal=True)
    assert isinstance(allowed, Raw)
    assert (allowed.content, allowed.key) == ("INTERNAL", outer.url(path))
    assert allowed.url.endswith("/secret")


def test_a_listed_internal_page_is_read_and_the_last_address_is_kept(inner: Server, outer: Server) -> None:
    assert isinstance(fetched(inner, "/secret"), Raw)
    moved = fetched(outer, "/moved")
    assert isinstance(moved, Raw)
    assert (moved.url, moved.key) == (outer.url("/page"), outer.url("/moved"))


def test_redirects_without_end_and_a_server_that_drips_cost_the_page(
    outer: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PAGE_S", 1.0)
    reasons = [item.reason for path in ("/round", "/drips") if isinstance(item := fetched(outer, path), Failure)]
    assert reasons == ["more than 5 redirects", "takes longer than 1 s"]


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("10.1.2.3", False), ("169.254.169.254", False), ("::1", False), ("::ffff:127.0.0.1", False)],
)
def test_addresses_of_this_network_are_told_from_those_of_the_internet(address: str, public: bool) -> None:
    assert web.is_public(address) is public


def test_what_is_no_list_of_addresses_says_so(tmp_path: Path) -> None:
    wrong = put(tmp_path, {"pages.txt": "ftp://e.org\n", "empty.txt": "# nothing\n"})
    reasons = [failures(read("web", wrong / name))[0].reason for name in ("pages.txt", "empty.txt", "missing.txt")]
    assert reasons[:2] == ["no address: ftp://e.org", "no addresses in it"]
    assert reasons[2].startswith("neither an address nor a file")


def test_names_that_are_no_text_are_written_out(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("# A\n\nText.")
    put(tmp_path, {"a.jsonl": '{"id": "\\ud800", "title": "x", "text": "y", "url": "https://e.org/\\udc00"}'})
    line, page = read_source("folder", Options(location=str(tmp_path)))
    assert isinstance(line, Raw)
    assert isinstance(page, Raw)
    assert (page.origin, line.key, line.url) == ("\\udcff.md", "\\ud800", "https://e.org/\\udc00")


@pytest.mark.parametrize("kind", sorted(set(names()) - {"web", "github"}))
def test_every_source_names_a_missing_place_an_empty_folder_and_a_damaged_archive(kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 damaged")
    for place in ("missing", "empty", "bad.zip"):
        items = read(kind, tmp_path / place)
        assert items
        assert all(isinstance(item, Failure) for item in items)


def test_hidden_files_are_left_out_of_archives_and_zips_in_zips_are_opened(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("a.md", "__MACOSX/a.md", ".DS_Store"):
            archive.writestr(name, "# A\n\nText.")
    (tmp_path / "x.zip").write_bytes(data.getvalue())
    outer = tmp_path / "outer.zip"
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(tmp_path / "x.zip", "x.zip")
    for place, origin in (("x.zip", "x.zip/a.md"), ("outer.zip", "outer.zip/x.zip/a.md")):
        assert [item.origin for item in read("folder", tmp_path / place) if isinstance(item, Raw)] == [origin]
