"""What a model wrote, sentence by sentence against what it was given. Pure.

A sentence keeps a marker only if the source behind it says something like it; one without any such source is labelled
as the model's own inference. Markers of no source go, names and numbers that stand nowhere are pointed out, and a
sentence that recommends what a case refutes, contradicts a finding or repeats our instructions is taken out.
"""

from trainmedic.service.llm.verify.against import Denial, denials_of
from trainmedic.service.llm.verify.check import Grounding, Verification, verify
from trainmedic.service.llm.verify.pieces import complete
from trainmedic.service.llm.verify.words import content

__all__ = ["Denial", "Grounding", "Verification", "complete", "content", "denials_of", "verify"]
