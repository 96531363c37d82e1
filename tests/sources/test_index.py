"""The package index: how it is asked, what of its answers is believed, and how pip's configuration is read."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.sources.archives import CODE, sdist, wheel
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.sources import index as index_module
from trainmedic.kb.sources.index import Index
from trainmedic.kb.sources.pip_configuration import PipConfiguration, pip_configuration

JSON = "application/vnd.pypi.simple.v1+json"


class Site:
    """A server on this machine: path → (status, headers, body)."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str | None]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, self.headers["Authorization"]))
                status, headers, body = site.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, path: Path, **more: object) -> None:
        content = path.read_bytes()
        self.answers[f"/files/{path.name}"] = (200, {}, content)
        digest = hashlib.sha256(content).hexdigest()
        file = {"filename": path.name, "url": f"/files/{path.name}", "hashes": {"sha256": digest}, **more}
        _, _, body = self.answers.get("/simple/tiny/", (200, {}, b'{"files": []}'))
        files = [*json.loads(body)["files"], file]
        self.answers["/simple/tiny/"] = (200, {"Content-Type": JSON}, json.dumps({"files": files}).encode())

    def index(self, user: str = "") -> Index:
        url = self.url.replace("//", f"//{user}@") if user else self.url
        return Index(PipConfiguration(indexes=(f"{url}/simple/",), timeout_s=5))


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_releases_are_listed_in_order_with_date_and_marks(site: Site, tmp_path: Path) -> None:
    site.publish(wheel(tmp_path, version="1.10"), **{"upload-time": "2026-05-02T10:00:00Z"})
    site.publish(sdist(tmp_path, CODE, version="1.10"), **{"upload-time": "2026-05-01T10:00:00Z"})
    site.publish(wheel(tmp_path, version="1.9"), yanked="broken")
    site.publish(wheel(tmp_path, version="2.0rc1"))
    listed = [(each.version, each.released, each.yanked, each.prerelease) for each in site.index().releases("Tiny")]
    assert listed == [
        ("1.9", None, True, False),
        ("1.10", "2026-05-01", False, False),
        ("2.0rc1", None, False, True),
    ]


def test_a_release_comes_from_its_wheel_rather_than_its_sdist(site: Site, tmp_path: Path) -> None:
    site.publish(sdist(tmp_path, CODE), size=10)
    site.publish(wheel(tmp_path), size=900, **{"upload-time": "2026-05-02T10:00:00Z"})
    tree = site.index().fetch("tiny", "1.0")
    assert (tree.origin, tree.released, tree.paths()) == ("wheel", "2026-05-02", tuple(CODE))


def test_an_sdist_is_read_without_running_it(site: Site, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    site.publish(sdist(tmp_path, {**CODE, "setup.py": f"open({str(mark)!r}, 'w')\n".encode()}))
    assert site.index().fetch("tiny", "1.0").origin == "sdist"
    assert not mark.exists()


def test_a_page_of_links_is_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "simple" / "tiny"
    folder.mkdir(parents=True)
    digest = hashlib.sha256(wheel(tmp_path).read_bytes()).hexdigest()
    link = "../../tiny-1.0-py3-none-any.whl"
    (folder / "index.html").write_text(f'<a data-yanked="" href="{link}#sha256={digest}">x</a><a href="no.txt">y</a>')
    index = Index(PipConfiguration(indexes=((tmp_path / "simple").as_uri(),)))
    assert [each.yanked for each in index.releases("tiny")] == [True]
    assert index.fetch("tiny", "1.0").paths() == tuple(CODE)


def test_a_folder_of_archives_is_an_index_too(tmp_path: Path) -> None:
    wheel(tmp_path)
    wheel(tmp_path, name="other")
    for place in (str(tmp_path), tmp_path.as_uri()):
        index = Index(PipConfiguration(find_links=(place, "/nowhere")))
        assert [each.version for each in index.releases("tiny")] == ["1.0"]
        assert index.fetch("tiny", "1.0").paths() == tuple(CODE)


def test_a_file_that_is_not_the_listed_one_is_refused(site: Site, tmp_path: Path) -> None:
    site.publish(wheel(tmp_path))
    site.answers["/files/tiny-1.0-py3-none-any.whl"] = (200, {}, b"something else")
    with pytest.raises(SourceError, match="SHA-256 differs"):
        site.index().fetch("tiny", "1.0")


def test_a_download_is_cut_off_at_its_bound(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.publish(wheel(tmp_path))
    monkeypatch.setattr(index_module, "LARGEST_ARCHIVE", 100)
    with pytest.raises(SourceError, match="sends more than"):
        site.index().fetch("tiny", "1.0")


def test_archives_that_say_they_are_too_large_are_not_fetched(site: Site, tmp_path: Path) -> None:
    site.publish(wheel(tmp_path), size=1 << 40)
    with pytest.raises(SourceError, match="too large"):
        site.index().fetch("tiny", "1.0")
    assert [path for path, _ in site.asked] == ["/simple/tiny/"]


@every_case("target", ["http://index.invalid/x", "ftp://127.0.0.1/x", "file:///etc/hostname"])
def test_a_redirect_to_what_others_can_change_is_not_followed(site: Site, tmp_path: Path, target: str) -> None:
    site.publish(wheel(tmp_path))
    site.answers["/files/tiny-1.0-py3-none-any.whl"] = (302, {"Location": target}, b"")
    with pytest.raises(SourceError):
        site.index().fetch("tiny", "1.0")


def test_an_index_is_not_asked_over_http() -> None:
    with pytest.raises(SourceError, match="asked over http") as caught:
        Index(PipConfiguration(indexes=("http://me:secret@index.invalid/simple",))).releases("tiny")
    assert "secret" not in caught.value.message
    assert caught.value.hint == "packages are fetched over https only, or from a file"


def test_a_file_elsewhere_does_not_get_the_password_of_the_index(site: Site, tmp_path: Path) -> None:
    site.publish(wheel(tmp_path))
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.answers["/files/tiny-1.0-py3-none-any.whl"] = (302, {"Location": f"{elsewhere}/moved"}, b"")
    site.answers["/moved"] = (200, {}, wheel(tmp_path).read_bytes())
    site.index(user="me:secret").fetch("tiny", "1.0")
    sent = dict(site.asked)
    assert sent["/simple/tiny/"] == "Basic bWU6c2VjcmV0"
    assert sent["/moved"] is None


@every_case(("status", "error"), [(404, NotFound), (401, SourceError), (500, SourceError)])
def test_an_answer_without_a_list_is_an_error_that_helps(site: Site, status: int, error: type[Exception]) -> None:
    site.answers["/simple/tiny/"] = (status, {}, b"")
    with pytest.raises(error) as caught:
        site.index().releases("tiny")
    assert getattr(caught.value, "hint", None)


@every_case("body", [b"", b"[]", b'{"files": 3}', b"\xff"])
def test_an_answer_that_is_no_list_is_an_error(site: Site, body: bytes) -> None:
    site.answers["/simple/tiny/"] = (200, {"Content-Type": JSON}, body)
    with pytest.raises(SourceError):
        site.index().releases("tiny")


@every_case(
    "file", [{}, {"filename": "../tiny-1.0-py3-none-any.whl", "url": "x"}, {"filename": "tiny-1.0.exe", "url": "x"}]
)
def test_entries_that_are_no_archive_of_the_package_are_skipped(site: Site, file: dict[str, str]) -> None:
    site.answers["/simple/tiny/"] = (200, {"Content-Type": JSON}, json.dumps({"files": [file]}).encode())
    with pytest.raises(NotFound):
        site.index().releases("tiny")


def test_a_server_that_cannot_be_reached_is_an_error_that_names_the_bundle(site: Site) -> None:
    index = Index(PipConfiguration(indexes=("http://127.0.0.1:9/simple",)))
    with pytest.raises(SourceError, match="cannot be reached") as caught:
        index.releases("tiny")
    assert "import a bundle" in str(caught.value.hint)


def test_an_unknown_release_is_said_with_the_newest(site: Site, tmp_path: Path) -> None:
    site.publish(wheel(tmp_path, version="1.3"))
    with pytest.raises(NotFound) as caught:
        site.index().fetch("tiny", "7")
    assert caught.value.hint == "the newest release is 1.3"


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., PipConfiguration]:
    """The configuration with this file of the user and these variables."""

    def read(text: str = "", **variables: str) -> PipConfiguration:
        own = tmp_path / "pip" / "pip.conf"
        own.parent.mkdir(exist_ok=True)
        own.write_text(text)
        places = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none")}
        return pip_configuration({**places, **variables})

    return read


def test_the_index_is_that_of_pip(configured: Callable[..., PipConfiguration]) -> None:
    text = "[global]\nindex-url = https://a.invalid/simple\nextra_index_url =\n    https://b.invalid\n    https://c.invalid\n"
    found = configured(text + "cert = /ours.pem\ntimeout = 40\n")
    assert found.indexes == ("https://a.invalid/simple", "https://b.invalid", "https://c.invalid")
    assert (found.certificates, found.timeout_s) == (Path("/ours.pem"), 40)
    assert configured(text, PIP_INDEX_URL="https://d.invalid").indexes[0] == "https://d.invalid"
    assert configured(text, PIP_NO_INDEX="1", PIP_FIND_LINKS="/a /b").indexes == ()
    assert configured(text, PIP_NO_INDEX="1", PIP_FIND_LINKS="/a /b").find_links == ("/a", "/b")


def test_without_a_configuration_the_index_is_the_default_of_pip(configured: Callable[..., PipConfiguration]) -> None:
    (url,) = configured().indexes
    assert url.startswith("https://")
    assert url.endswith("/simple")


def test_passwords_of_the_configuration_are_not_shown(configured: Callable[..., PipConfiguration]) -> None:
    assert "secret" not in repr(configured(PIP_INDEX_URL="https://me:secret@a.invalid", PIP_PROXY="http://me:secret@b"))


@every_case("text", ["", "[global", "\0", "[global]\ntimeout = soon\n"])
def test_a_configuration_that_cannot_be_read_is_no_configuration(
    configured: Callable[..., PipConfiguration], text: str
) -> None:
    assert configured(text).timeout_s == 15
