"""Training code before its first step, and its losses: what only looks like a fault of theirs."""

from __future__ import annotations

import pytest

from tests.parse.test_training_code import flaws

STEP = """
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
TRAINABLE = "optimizer = AdamW(filter(lambda p: p.requires_grad, model.parameters()))\n"
ADAPTED = "model = get_peft_model(model, config)\n"
CAUSAL = "model = AutoModelForCausalLM.from_pretrained(name)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("optimizer = AdamW(groups)\n" + ADAPTED, {}),
        ("optimizer = AdamW(model.parameters())\nmodel = FSDP(model, use_orig_params=True)\n" + STEP, {}),
        (
            "optimizer = AdamW(model.parameters())\nmodel = FSDP(model)\n" + STEP,
            {"optimizer_before_new_parameters": [1, 2]},
        ),
        (TRAINABLE + "model.config.use_cache = False\n", {}),
        (TRAINABLE + "model.lm_head.requires_grad_(True)\n", {"optimizer_without_unfrozen": [1, 2]}),
        (TRAINABLE + "while True:\n    p.requires_grad = True\n", {}),
    ],
)
def test_an_optimizer_has_the_parameters_that_it_was_given(code: str, expected: dict[str, list[int]]) -> None:
    assert flaws(code) == expected


@pytest.mark.parametrize(
    ("after", "frozen"),
    [
        ("x = 1", True),
        ("model.lora.requires_grad_(False)", True),
        ("model.lora.requires_grad_()", False),
        ("model.enable_adapters()", False),
        ("for p in model.lora_parameters():\n    p.requires_grad = True", False),
    ],
)
def test_an_adapter_that_is_thawed_again_trains(after: str, frozen: bool) -> None:
    assert ("adapter_frozen_with_base" in flaws(f"{ADAPTED}model.requires_grad_(False)\n{after}\n")) is frozen


def test_what_sees_to_the_gradients_of_the_inputs_may_check_point_later() -> None:
    late = ADAPTED + "model.gradient_checkpointing_enable()\n"
    assert flaws(late) == {"checkpointing_after_adapter": [1, 2]}
    assert flaws(late + "model._prepare_model_for_gradient_checkpointing(model)\n") == {}
    assert flaws(late + "model.enable_input_require_grads()\n") == {}


@pytest.mark.parametrize(
    ("loader", "alike"),
    [
        ("DataLoader(data, shuffle=True)", True),
        ("DataLoader(data)", False),
        ("DataLoader(**options)", False),
        ("DataLoader(val_data, shuffle=True)", False),
        ("DataLoader(read(rank), shuffle=True)", False),
        ("DataLoader(Subset(data, mine), shuffle=True)\nmine = range(rank, 9, 2)", False),
        ("DataLoader(data, shuffle=True)\nmine = [row for row in data if row % world_size == 0]", False),
    ],
)
def test_ranks_see_the_same_data_only_of_a_shuffled_loader_of_all_of_it(loader: str, alike: bool) -> None:
    found = flaws(f"model = DistributedDataParallel(model)\nloader = {loader}\n{STEP}")
    assert ("same_data_on_every_rank" in found) is alike


def test_a_loop_that_counts_no_epochs_needs_no_epoch() -> None:
    inner = STEP.strip().replace("\n", "\n    ")
    sampler = "sampler = DistributedSampler(data)\n"
    assert flaws(f"{sampler}while True:\n    {inner}\n") == {}
    assert flaws(f"{sampler}for epoch in range(1):\n    {inner}\n") == {}
    assert flaws(f"{sampler}for epoch in range(2):\n    {inner}\n") == {"sampler_without_epoch": [1, 2]}


@pytest.mark.parametrize(
    ("made", "optimizer", "lost"),
    [
        ("build().half()", "AdamW", True),
        ("build().half()\nmodel.float()", "AdamW", False),
        ("Net.from_pretrained(n, torch_dtype=torch.float16)", "Adam", True),
        ("Net.from_pretrained(n, torch_dtype=torch.float16)", "SGD", False),
        ("Net.from_pretrained(n, dtype=torch.bfloat16)", "AdamW", False),
        ("build()", "AdamW", False),
    ],
)
def test_only_adam_of_half_precision_weights_loses_updates(made: str, optimizer: str, lost: bool) -> None:
    found = flaws(f"model = {made}\noptimizer = {optimizer}(model.parameters())\nmodel.train()\n{STEP}")
    assert ("half_precision_weights" in found) is lost


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("loss = F.cross_entropy(nn.Softmax(dim=-1)(logits), y)\nloss.backward()\n", True),
        ("net = nn.Sequential(a, nn.Softmax(-1))\nloss = F.cross_entropy(net(x), y)\nloss.backward()\n", True),
        ("net = nn.Sequential(a, b)\nloss = F.cross_entropy(net(x), y)\nloss.backward()\n", False),
        ("net = nn.Sequential()\nloss = F.cross_entropy(net(x), y)\nloss.backward()\n", False),
        ("if soft:\n    x = torch.softmax(x, -1)\nloss = F.cross_entropy(x, y)\nloss.backward()\n", False),
        ("seen[0] = torch.softmax(x, -1)\nloss = F.cross_entropy(net(x).logits, y)\nloss.backward()\n", False),
        ("x, y = torch.softmax(x, -1), 1\nloss = F.cross_entropy(x, y)\nloss.backward()\n", False),
        ("loss = F.cross_entropy(a.view(1).view(2).view(3).view(4).view(5), y)\nloss.backward()\n", False),
        ("loss = F.cross_entropy(torch.softmax(x, -1)[0], y)\nloss.backward()\n", True),
    ],
)
def test_probabilities_are_told_from_logits(code: str, expected: bool) -> None:
    assert ("softmax_before_cross_entropy" in flaws(code)) is expected


@pytest.mark.parametrize(
    ("labels", "shifted"),
    [
        ("ids[:, 1:]", True),
        ("torch.roll(ids, -1, dims=1)", True),
        ("ids[:, 0]", False),
        ("ids[:, 2:]", False),
        ("ids[:, :-1]", False),
        ("ids", False),
    ],
)
def test_labels_that_are_moved_by_one_are_moved_twice(labels: str, shifted: bool) -> None:
    code = f"{CAUSAL}labels = {labels}\nloss = model(input_ids=ids, labels=labels).loss\nloss.backward()\n"
    assert ("shifted_twice" in flaws(code)) is shifted


@pytest.mark.parametrize(
    ("made", "ids", "shifted"),
    [("model", "ids[:, 1:]", False), ("Head(model)", "ids[:, :-1]", False), ("DDP(model)", "ids[:, :-1]", True)],
)
def test_labels_are_moved_twice_only_against_the_inputs_of_the_model_itself(made: str, ids: str, shifted: bool) -> None:
    head = CAUSAL if made == "model" else f"{CAUSAL}net = {made}\n"
    called = "model" if made == "model" else "net"
    code = f"{head}loss = {called}(input_ids={ids}, labels=ids[:, 1:]).loss\nloss.backward()\n"
    assert ("shifted_twice" in flaws(code)) is shifted


@pytest.mark.parametrize(
    ("loss", "copied"),
    [
        ('F.cross_entropy(model(x).logits, batch["input_ids"])', True),
        ('F.nll_loss(model(x).logits, batch["input_ids"])', False),
        ("F.cross_entropy(model(x).logits)", False),
        ('F.cross_entropy(head(x), batch["input_ids"])', False),
        ('F.cross_entropy(shift(model(x).logits), batch["input_ids"])', False),
    ],
)
def test_a_token_is_compared_with_itself_only_without_any_shift(loss: str, copied: bool) -> None:
    assert ("never_shifted" in flaws(f"{CAUSAL}model.train()\nloss = {loss}\nloss.backward()\n")) is copied


@pytest.mark.parametrize(
    ("labels", "learned"),
    [
        ('x["labels"] = copy.deepcopy(x["input_ids"])', True),
        ('x["labels"] = x["input_ids"]', True),
        ("labels = input_ids", True),
        ("labels = x.input_ids.clone()", True),
        ('x["labels"] = x["targets"]', False),
        ('x["labels"] = [0]', False),
        ('x["other"] = x["input_ids"]', False),
    ],
)
def test_padding_is_learned_where_the_labels_are_the_inputs(labels: str, learned: bool) -> None:
    code = f'def encode(row):\n    x = tokenizer(row, padding="max_length")\n    {labels}\n    return x\n'
    assert ("padding_is_learned" in flaws(code)) is learned


@pytest.mark.parametrize(
    ("test", "masked"),
    [
        ("labels == tokenizer.pad_token_id", True),
        ("labels != tokenizer.pad_token_id", False),
        ("labels == tokenizer.bos_token_id", False),
        ("mask", False),
    ],
)
def test_the_end_is_masked_by_what_equals_the_padding(test: str, masked: bool) -> None:
    code = f"tokenizer.pad_token = tokenizer.eos_token\nlabels[{test}] = -100\n"
    assert ("end_is_masked" in flaws(code)) is masked


@pytest.mark.parametrize(
    ("scoring", "kept"),
    [
        ("model.eval()\nfor batch in val_loader:\n    report(model(batch))\n", True),
        ("model.eval()\nreport(model(batch))\n", False),
        ("frame.eval('a + b')\nfor batch in val_loader:\n    report(model(batch))\n", False),
        ("with torch.no_grad():\n    model.eval()\n    for batch in val_loader:\n        model(batch)\n", False),
    ],
)
def test_an_evaluation_keeps_the_graph_only_where_gradients_are_on(scoring: str, kept: bool) -> None:
    code = f"optimizer = AdamW(model.parameters())\nmodel.train()\n{STEP}{scoring}"
    assert ("evaluated_with_graph" in flaws(code)) is kept


OWN_LOSS = """
class Own(Trainer):
    def compute_loss(self, model, inputs, {arguments}):
        {body}
"""


@pytest.mark.parametrize(
    ("arguments", "body", "found"),
    [
        ("return_outputs=False, **kwargs", "return model(**inputs).loss", True),
        ("num_items_in_batch=None", "return super().compute_loss(model, inputs)", True),
        ("**kwargs", "return super().compute_loss(model, inputs, **kwargs)", False),
        ("num_items_in_batch=None", "return total(model, inputs) / num_items_in_batch", False),
        ("**kwargs", "return model(**inputs).loss / self.args.gradient_accumulation_steps", False),
        ("return_outputs=False", "return model(**inputs).loss", False),
    ],
)
def test_an_own_loss_that_is_given_the_count_must_use_it_or_divide(arguments: str, body: str, found: bool) -> None:
    code = OWN_LOSS.format(arguments=arguments, body=body)
    assert ("loss_without_token_count" in flaws(code)) is found
    assert "loss_without_token_count" not in flaws(code + "\ntrainer.model_accepts_loss_kwargs = False\n")


def test_a_model_is_loaded_after_the_arguments_whatever_the_order_of_the_text() -> None:
    load = "def load():\n    return AutoModelForCausalLM.from_pretrained(name)\n"
    args = "args = TrainingArguments(output_dir='out')\n"
    assert "model_loaded_before_arguments" in flaws(load + "model = load()\n" + args)
    assert "model_loaded_before_arguments" not in flaws(load + args + "model = load()\n")
    assert "model_loaded_before_arguments" not in flaws("tok = AutoTokenizer.from_pretrained(name)\n" + args)
