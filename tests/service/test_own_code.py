"""A fault in the user's own training code as the cause of an answer."""

from __future__ import annotations

from tests.every_case import every_case
from tests.service.values import causes
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask

LOOP = """
import torch
model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in loader:
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
"""


@every_case(
    ("question", "leads"),
    [
        ("It gets worse with every epoch, a lower learning rate helps.", True),
        ("loss diverges after 200 steps", True),
        ("CUDA out of memory at step 3", False),
    ],
)
def test_what_the_code_shows_leads_unless_the_question_is_about_something_else(
    advisor: Advisor, question: str, leads: bool
) -> None:
    answer = advisor.ask(Ask(question=question, attachments=(Attachment(name="train.py", content=LOOP),)))
    assert (causes(answer)[:1] == ["code-gradients-never-cleared"]) is leads
    assert any(finding.rule_id == "code-gradients-never-cleared" for finding in answer.findings)
