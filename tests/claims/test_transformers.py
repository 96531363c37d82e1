"""Claims about tokenizers, collators, the Trainer's arguments and accelerate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import FullyShardedDataParallelPlugin
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from torch.distributed.fsdp import StateDictType
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    TrainingArguments,
)

from tests.claims import PAGES, Claim, Claims

HF = Claims()


def test_each_claim_names_its_page() -> None:
    assert {case.values[0] for case in HF.cases} <= PAGES


@pytest.mark.parametrize(("page", "claim"), HF.cases)
def test_claim(page: str, claim: Claim, tmp_path: Path) -> None:
    claim(tmp_path)


def _tokenizer(pad: str = "<pad>") -> Any:
    words = {word: number for number, word in enumerate(("<bos>", "<eos>", "<pad>", "<unk>", "hello", "world"))}
    inner = Tokenizer(WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    inner.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    template = "<bos> {% for m in messages %}{{ m['content'] }} {% endfor %}"
    tokenizer: Any = PreTrainedTokenizerFast
    return tokenizer(
        tokenizer_object=inner, bos_token="<bos>", eos_token="<eos>", pad_token=pad, chat_template=template
    )


@HF.of("bos-doubled-or-missing")
def template_and_tokenizer_both_write_bos(_: Path) -> None:
    tokenizer, chat = _tokenizer(), [{"role": "user", "content": "hello"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False)
    assert tokenizer(text)["input_ids"] == [0, 0, 4]
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == [0, 4]
    assert tokenizer.apply_chat_template(chat, return_dict=False) == [0, 4]


@HF.of("sft-prompt-mask-lost-with-transformers-5")
def tokens_of_a_template_are_a_dict_of_two_keys_unless_asked_otherwise(_: Path) -> None:
    prompt = _tokenizer().apply_chat_template([{"role": "user", "content": "hello world hello"}])
    assert len(prompt) == 2


@HF.of("labels-not-padded-by-collator")
def padding_leaves_labels_ragged_and_the_seq2seq_collator_pads_them(_: Path) -> None:
    rows = [{"input_ids": [4, 5], "labels": [4, 5]}, {"input_ids": [4], "labels": [4]}]
    with pytest.raises(ValueError, match=r"`labels` in this case\) have excessive nesting"):
        DataCollatorWithPadding(_tokenizer())([dict(row) for row in rows])
    assert DataCollatorForSeq2Seq(_tokenizer())([dict(row) for row in rows])["labels"].tolist() == [[4, 5], [4, -100]]


@HF.of("text-column-reaches-the-collator")
def a_column_of_text_cannot_become_a_tensor_whatever_the_padding(_: Path) -> None:
    with pytest.raises(ValueError, match="activate truncation and/or padding"):
        DataCollatorWithPadding(_tokenizer())([{"input_ids": [4], "text": "hello"}])


@HF.of("tokenizer-without-pad-token")
@HF.of("sft-pad-equals-eos-never-stops")
def a_collator_that_masks_pad_masks_the_end_token_where_both_are_one(_: Path) -> None:
    row = [{"input_ids": [4, 5, 1]}]
    ends = {
        pad: DataCollatorForLanguageModeling(_tokenizer(pad), mlm=False)(row)["labels"][0, -1].item()
        for pad in ("<pad>", "<eos>")
    }
    assert ends == {"<pad>": 1, "<eos>": -100}


@HF.of("metrics-decode-ignored-labels")
def an_ignored_label_is_no_id_with_or_without_special_tokens(_: Path) -> None:
    for skip in (True, False):
        with pytest.raises(OverflowError):
            _tokenizer().decode([4, -100], skip_special_tokens=skip)


@HF.of("trainer-best-metric-wrong-direction")
def only_a_name_that_ends_in_loss_counts_as_smaller_is_better(folder: Path) -> None:
    better = {
        name: TrainingArguments(output_dir=str(folder), metric_for_best_model=name, use_cpu=True).greater_is_better
        for name in ("eval_loss", "eval_perplexity", "loss_of_a_kind")
    }
    assert better == {"eval_loss": False, "eval_perplexity": True, "loss_of_a_kind": True}


@HF.of("gathered-parameters")
def accelerate_collects_a_full_state_dict_on_the_cpu_of_rank_0(_: Path) -> None:
    config = FullyShardedDataParallelPlugin(fsdp_version=1, state_dict_type="FULL_STATE_DICT").state_dict_config
    assert config.offload_to_cpu
    assert config.rank0_only


@HF.of("fsdp-sharded-checkpoint-has-no-model-file")
def fsdp2_saves_shards_where_nothing_is_written(_: Path) -> None:
    assert FullyShardedDataParallelPlugin(fsdp_version=2).state_dict_type == StateDictType.SHARDED_STATE_DICT
    assert FullyShardedDataParallelPlugin(fsdp_version=1).state_dict_type == StateDictType.FULL_STATE_DICT


@HF.of("batch-generation-right-padding")
def the_last_position_of_a_row_padded_on_the_right_is_a_pad(_: Path) -> None:
    batch = _tokenizer().pad({"input_ids": [[4, 5], [4]]}, return_tensors="pt")
    assert torch.equal(batch["input_ids"][:, -1], torch.tensor([5, 2]))
