"""Secrets disappear from every context they are pasted in, and nothing else does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmedic.kb.mask import mask

BODY = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7n"
HEX = "0123456789abcdef0123456789abcdef01234567"
SHAPES = {
    "huggingface_token": "hf_" + BODY[:34],
    "api_key": "sk-proj-" + BODY,
    "github_token": "ghp_" + BODY[:36],
    "gitlab_token": "glpat-" + BODY[:20],
    "slack_token": "xoxb-" + BODY[:24],
    "google_key": "AIza" + BODY[:35],
    "aws_key": "AKIA" + "ABCD1234EFGH5678",
    "jwt": "eyJ" + BODY[:20] + "." + BODY[:30] + "." + BODY[:20],
    "package_token": "npm_" + BODY[:36],
    "modelscope_token": "ms-12345678-90ab-cdef-1234-567890abcdef",
    "wandb_key": "wandb_v1_" + BODY,
}
CONTEXTS = (
    "--token {}", "--hub_token={} --tokenizer x", "export KEY={}", "key: {}", 'key: "{}"', '{{"key": "{}"}}',
    'login("{}")', "f(key='{}', n=1)", "2025-01-01 INFO using {} now", "{}",
)  # fmt: skip
KEYED = (
    "WANDB_API_KEY={}", "export AWS_SECRET_ACCESS_KEY={}", "api_key: {}", '"api_key": "{}"', 'client_secret = "{}"',
    "--wandb_token {}", "--hf-token={}", 'os.environ["HF_TOKEN"] = "{}"', "os.environ.setdefault('HF_TOKEN', '{}')",
    "password: {}", "mysql://root:{}@db/x", "Authorization: Bearer {}", 'headers={{"Authorization": "Bearer {}"}}',
    "MODELSCOPE_API_TOKEN={}", '\\"secret_key\\": \\"{}\\"', "密码：{}", "sshpass -p {} ssh host",
    "machine api.wandb.ai login user password {}", "https://hooks.slack.com/services/{}",
    "AccountKey={}", "https://x/y?sv=1&sig={}", "git clone https://{}@example.org/x",
)  # fmt: skip
CLEAN = """
{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-07, 'num_tokens': 12345678, 'tokens_per_second': 1100.5}
max_tokens: 4096
pad_token: <|endoftext|>
eos_token: "<|im_end|>"  image_token: "<|image_pad|>12345"
--tokenizer Qwen/Qwen2.5-7B --add_special_tokens --max_new_tokens 512 --stop_token_ids 151643
"add_special_tokens": true, "use_auth_token": true, "token": null, "api_key": null,
hub_token: None
HF_TOKEN=$HF_TOKEN WANDB_API_KEY=${WANDB_API_KEY} token: ${TOKEN} password: <your password>
token=os.environ["HF_TOKEN"], api_key=os.getenv("KEY")
pip install git+https://github.com/huggingface/trl.git@0123456789abcdef0123456789abcdef01234567
torch==2.4.0 --hash=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
wandb: see commit https://github.com/a/b/commit/0123456789abcdef0123456789abcdef01234567
MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 git@github.com:a/b.git @torch.no_grad()
sk-learn ValueError: Tokenizer has no pad_token. The token is missing; step 100, tokens: 1234
secretary of state; the keyboard; key: value; access_keyed_by: 3
password: ab  passphrase: fine  secret：none  api_key: x1
hub_token: my-team  access_token: abcdefghij
ghp_short hf_hub_download hf_model sk-short bearer of news
"""


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("kind", SHAPES)
def test_a_known_shape_of_secret_is_masked_in_every_context(kind: str, context: str) -> None:
    secret = SHAPES[kind]
    text = context.format(secret)
    masked = mask(text)
    assert secret[-12:] not in masked.text
    assert sum(masked.counts.values()) == 1
    assert masked.text.replace("*", "") in text or len(masked.text) == len(text)


@pytest.mark.parametrize("context", KEYED)
def test_the_value_of_a_key_that_names_a_secret_is_masked(context: str) -> None:
    secret = BODY[:24]
    masked = mask(f"a line\n{context.format(secret)}\nanother")
    assert secret not in masked.text
    assert masked.text.startswith("a line\n")
    assert masked.text.endswith("\nanother")


@pytest.mark.parametrize("context", ["--use_wandb {}", "wandb login {}", "wandb.login(key='{}')", "use_wandb: {}"])
def test_forty_hex_digits_after_wandb_are_a_key(context: str) -> None:
    assert mask(context.format(HEX)).counts == {"wandb_key": 1}
    assert HEX not in mask(context.format(HEX)).text


def test_the_prefix_that_names_the_kind_stays_readable() -> None:
    assert mask("hf_" + BODY[:34]).text == "hf_" + "*" * 34
    assert mask("a.b@example.com").text == "***@example.com"
    assert mask("https://bob:hunter2@host/").text == "https://bob:*******@host/"


def test_a_private_key_is_masked_with_its_line_breaks_kept() -> None:
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----\nafter"
    assert mask(text).text == text.replace(BODY, "*" * len(BODY))
    assert BODY not in mask(text.partition("-----END")[0]).text


@pytest.mark.parametrize("line", CLEAN.strip().splitlines())
def test_a_line_without_secrets_is_left_alone(line: str) -> None:
    assert mask(line).text == line


def test_two_private_keys_in_a_row_and_a_masked_one_are_read() -> None:
    text = "-----BEGIN PRIVATE KEY----------BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"
    once = mask(text)
    assert mask(once.text) == type(once)(text=once.text)


def test_a_letter_whose_lower_case_is_longer_does_not_shift_anything() -> None:
    assert mask("İİİ password=hunter2 x").text == "İİİ password=******* x"


def test_a_password_of_several_words_is_masked_to_its_quotation_mark() -> None:
    assert mask('password: "my pass phrase" # x').text == 'password: "**************" # x'


@given(st.text(max_size=300))
def test_length_and_line_breaks_stay_and_masking_again_changes_nothing(text: str) -> None:
    once = mask(text)
    assert len(once.text) == len(text)
    assert [i for i, c in enumerate(once.text) if c in "\r\n"] == [i for i, c in enumerate(text) if c in "\r\n"]
    assert all(new in (old, "*") for old, new in zip(text, once.text, strict=True))
    assert mask(once.text).text == once.text


@given(
    st.lists(st.sampled_from([*KEYED, *CONTEXTS, "\n", " ", "x: 1"]), max_size=6),
    st.sampled_from(sorted(SHAPES.values())),
    st.sampled_from(KEYED),
)
def test_a_canary_never_survives_among_other_text(around: list[str], secret: str, context: str) -> None:
    text = "\n".join([*(c.format(secret) for c in around), context.format(secret), "end"])
    once = mask(text)
    assert secret not in once.text
    assert mask(once.text).text == once.text


@pytest.mark.parametrize(
    "hostile", ["a@", "wandb ", "token", "://a:", "eyJaaaaaaaaaa.", "password ", "authorization: "]
)
def test_hostile_repetition_takes_linear_time(hostile: str) -> None:
    started = time.thread_time()
    mask(hostile * (400_000 // len(hostile)))
    assert time.thread_time() - started < 15
