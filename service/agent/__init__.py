"""Investigation: an agent whose model looks things up, step by step, before it writes.

Its tools only read: cases, option catalogues, pasted lines, and the rules' findings for a changed configuration.
Verdict, causes and findings remain the advisor's. Import this lazily: `langchain.agents` takes about a second to load.
"""

from trainmedic.service.agent.agent import investigate

__all__ = ["investigate"]
