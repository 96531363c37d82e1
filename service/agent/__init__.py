"""Investigation: a model that looks things up, step by step, before it writes.

Its tools only read: cases, option catalogues, pasted lines, and the rules' findings for a changed configuration.
Verdict, causes and findings remain the advisor's.
"""

from trainmedic.service.agent.agent import investigate

__all__ = ["investigate"]
