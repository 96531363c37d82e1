"""Verification of a model's text against its sources, sentence by sentence. Pure.

A sentence keeps a marker only if that source says something similar; without such a source it is labelled as the
model's inference. Unknown markers are removed, names and numbers that no source contains are pointed out, and sentences
that recommend what a case refutes, contradict a finding or repeat our instructions are removed.
"""

from trainmedic.service.llm.verify.against import Denial, denials_of
from trainmedic.service.llm.verify.blocks import complete
from trainmedic.service.llm.verify.check import Grounding, Verification, verify
from trainmedic.service.llm.verify.words import content

__all__ = ["Denial", "Grounding", "Verification", "complete", "content", "denials_of", "verify"]
