"""What training code may do around a step without a fault, beside what is one."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.parse.test_training_code import flaws

LOOP = """
import torch
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
{body}
"""
PASS = """loss = model(**batch).loss
loss.backward()"""
STEP = f"""{PASS}
optimizer.step()
optimizer.zero_grad()"""


def in_loop(body: str) -> dict[str, list[int]]:
    return flaws(LOOP.format(body=indent(body, "    ")))


@pytest.mark.parametrize(
    "body",
    [
        f"optimizer.step()\noptimizer.zero_grad()\n{PASS}\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        f"{STEP}\nreward_model.eval()",
        f"{STEP}\nref_model.eval()",
        f"{STEP}\nif config.mode == 'test':\n    model.eval()",
        f"{STEP}\nwith torch.no_grad():\n    total += loss",
        f"{STEP}\ntotal = other + loss",
        f"total = 0\nfor part in batch:\n{indent(STEP, '    ')}\n    total = total + loss",
        "loss = model(**batch).loss\ntotal += loss\nobjective = total / 2\nloss.backward(retain_graph=True)\n"
        "objective.backward()\noptimizer.step()\noptimizer.zero_grad()",
    ],
    ids=[
        "clipped for the next step", "a model that is only evaluated", "a reference model", "a mode of its own",
        "added without a graph", "a sum that does not grow", "a total begun anew", "a total that goes backward",
    ],
)  # fmt: skip
def test_a_step_that_does_as_it_should_is_no_fault(body: str) -> None:
    assert in_loop(body) == {}


@pytest.mark.parametrize("kept", ["total += loss", "total = total + loss", "history.append(loss)"])
def test_a_loss_that_is_kept_with_its_graph_is_found_however_it_is_written(kept: str) -> None:
    assert in_loop(f"{STEP}\n{kept}") == {"graph_kept_for_logging": [9]}


@pytest.mark.parametrize(("used", "found"), [("model", {"never_in_training_mode": [2, 5]}), ("other", {})])
def test_only_a_loaded_model_that_goes_forward_has_to_be_switched_to_training(
    used: str, found: dict[str, list[int]]
) -> None:
    loaded = "model = AutoModelForCausalLM.from_pretrained(path)\noptimizer = torch.optim.AdamW(model.parameters())"
    step = indent(STEP.replace("model(", f"{used}("), "    ")
    assert flaws(f"import torch\n{loaded}\nfor batch in loader:\n{step}") == found


@pytest.mark.parametrize("divided", ["loss = loss / accumulation", "loss /= accumulation"])
def test_a_loss_that_the_library_divides_as_well_is_found_however_it_is_divided(divided: str) -> None:
    code = f"""
        accelerator = Accelerator(gradient_accumulation_steps=accumulation)
        for batch in loader:
            loss = model(**batch).loss
            {divided}
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    """
    assert flaws(code) == {"divided_twice": [5, 6]}


def test_the_library_that_exchanges_gradients_itself_may_switch_the_exchange_off() -> None:
    code = """
        for batch in loader:
            with {owner}.no_sync(model):
                loss = model(**batch).loss
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    """
    assert "exchange_switched_off" not in flaws(code.format(owner="accelerator"))
    assert flaws(code.format(owner="model")) == {"exchange_switched_off": [3, 5]}


@pytest.mark.parametrize(
    "code",
    [
        "while not done():\n    loss = model(**batch).loss\n    loss.backward()\n    optimizer.step()",
        "for batch in loader:\n    try:\n        loss = model(**batch).loss\n        loss.backward()\n"
        "    finally:\n        optimizer.step()",
        "for batch in loader:\n    loss: Tensor = model(**batch).loss\n    loss.backward()\n    optimizer.step()",
        "for batch in loader:\n    loss = sum(model(**part).loss for part in batch)\n    loss.backward()\n"
        "    optimizer.step(closure=closure())",
    ],
    ids=["while", "try", "a typed name", "a comprehension and a keyword"],
)
def test_a_loop_is_read_in_whatever_statements_it_is_written(code: str) -> None:
    made = "import torch\noptimizer = torch.optim.AdamW(model.parameters())\n"
    assert list(flaws(made + code)) == ["gradients_never_cleared"]
