"""One advisor over the shipped knowledge, built once for all tests that ask whole questions."""

from __future__ import annotations

import pytest

from service.advisor import Advisor
from service.history import History
from service.settings import Settings
from ui.app import load_knowledge


@pytest.fixture(scope="session")
def knowledge_advisor(tmp_path_factory: pytest.TempPathFactory) -> Advisor:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    return Advisor(load_knowledge(settings))


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared knowledge with a history of the test's own."""
    return Advisor(knowledge_advisor.knowledge, History("sqlite://"))
