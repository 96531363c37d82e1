"""The prompt: fixed instructions, the sources in a fixed order, and the user's texts as delimited data."""

from trainmedic.service.llm.prompts.build import Prompt, build, system_text, without_identities
from trainmedic.service.llm.prompts.sources import Source, sources_of

__all__ = ["Prompt", "Source", "build", "sources_of", "system_text", "without_identities"]
