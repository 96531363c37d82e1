"""An investigation: the model looks things up, step by step, before it writes.

It can only read: cases, option catalogues, the pasted lines, and what the rules would say of another configuration.
Verdict, causes and findings stay the advisor's. Loaded only when somebody asks for it: the agent's machinery
(`langchain.agents`) is heavy.
"""

from trainmedic.service.agent.agent import investigated

__all__ = ["investigated"]
