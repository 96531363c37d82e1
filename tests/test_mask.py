"""Secrets disappear from every context they are pasted in, and nothing else does."""

from __future__ import annotations

import base64
import random
import re
import time
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.pattern_samples import samples
from trainmedic.kb.data_files import load_table
from trainmedic.kb.mask import mask

BODY = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5kL7n"
HEX = "0123456789abcdef0123456789abcdef01234567"
SHAPES = {
    "huggingface_token": "hf_" + BODY[:34],
    "api_key": "sk-proj-" + BODY,
    "github_token": "ghp_" + BODY[:36],
    "github_fine_grained_token": "github_pat_" + BODY[:22] + "_" + BODY,
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
NAMES = (
    "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_PASSWORD", "HF_TOKEN", "AZURE_STORAGE_KEY", "OSS_SK",
    "DB_PASS", "MYSQL_PWD", "AZURE_DEVOPS_EXT_PAT",
)  # fmt: skip
NOTATIONS = (
    "env:\n- name: {name}\n  value: {value}\n", 'env:\n  - name: {name}\n    value: "{value}"\n',
    'env:\n  - value: "{value}"\n    name: {name}\n', '{{"name":"{name}","value":"{value}"}}',
    '[\n  {{\n    "name": "{name}",\n    "value": "{value}"\n  }}\n]',
    '{{"value":"{value}", "type": 1, "name":"{name}"}}', '"{{\\"name\\": \\"{name}\\", \\"value\\": \\"{value}\\"}}"',
    "- key: {name}\n  value: |\n    {value}\n", "<name>{name}</name>\n  <value>{value}</value>",
    "[[env]]\nname = '{name}'\nvalue = '{value}'", "az keyvault secret set --name {name} --value {value}",
    "ENV {name} {value}", "setenv {name} {value}", "set -gx {name} {value}", "| {name} | {value} |",
    "| `{name}` | `{value}` |", "{name}          {value}", "{name}\t{value}", "{name}:\n  {value}\n",
    "{name}: >-\n  {value}\n", "{name}: |\n  {value}\n", '"{name}":\n    "{value}",\n', "<{name}>{value}</{name}>",
    'os.environ.setdefault(\n    "{name}",\n    "{value}",\n)', "{name}%3D{value}", "我的{name}是{value}，帮忙看看",
    "{name}为{value}", "my {name} is {value} and it fails", "{name}={value}", "{name}: {value}",
    "docker run -e {name}={value} img", "$env:{name} = '{value}'",
)  # fmt: skip
"""Where a name and its value stand apart."""
FLAGS = (
    "args:\n- --api-key\n- {}\n", 'args:\n  - "--api-key"\n  - "{}"\n', '["--hf_token",\n "{}"]',
    '["--hf_token", "{}"]', "--wandb_api_key={}",
)  # fmt: skip
SAID = (
    "API key: {}", "OpenAI API Key: {}", "Access Key: {}", "Secret Key: {}",
    "Incorrect API key provided: {}. You can find", "the password is {}", "my token is {}", "my api key is {}",
    "密码为{}", "密码为 {}", "密钥为{}", "API密钥 = {}", "令牌:{}", "秘钥：{}", "访问密钥是{}",
    "服务器密码是 {} 登录不上", "curl -u alice:{} https://x/y", "curl -s --user 'alice:{}' https://x/y",
    "curl -X POST \\\n  -u alice:{} \\\n  https://x", "docker login -u alice -p {} registry", "mysql -uroot -p{} db",
    "mysqldump -u root -p'{}' db", "redis-cli -h h -a {}", "swanlab login -k {}", 'swanlab.login("{}")',
    'wandb.login(\n    key="{}",\n)', 'requests.get(u, auth=("alice", "{}"))', 'HTTPBasicAuth("alice", "{}")',
    "Cookie: session={}", "Set-Cookie: sessionid={}; Path=/", "default login user password {}",
    "machine h login u account a password {}", "machine h\n  login u\n  password {}",
    "pip install --index-url https://{}@h/simple", "echo {} | sudo -S apt update",
    "echo {} | docker login -u alice --password-stdin", "Driver=x;UID=sa;PWD={};", "ossutil64 config -e e -i x -k {}",
    "aws configure set aws_secret_access_key {}", "fs.s3a.secret.key={}", '"accessKeyId": "{}"', "credential: {}",
    "pass: {}", "pwd: {}", "SIGNING_KEY={}", "auth_key: {}", '"sk": "{}"', "secretId: {}",
    "AWS_BEARER_TOKEN_BEDROCK={}", "AZURE_OPENAI_KEY={}", "AZURE_STORAGE_ACCOUNT_KEY={}", "KAGGLE_KEY={}",
    "OSS_AK={}", "HUAWEICLOUD_SDK_AK={}", "SMTP_PASS={}", '//registry/:_auth="{}"', ".dockerconfigjson: {}",
    "https://b.s3.amazonaws.com/k?X-Amz-Expires=1&X-Amz-Signature={}", "https://h/o?X-Goog-Signature={}",
    "https://b.oss.aliyuncs.com/k?Expires=1&Signature={}", "https://h/k?q-ak=1&q-signature={}",
    "https://h/k?a=1\\u0026Signature={}", "Private-Lines: 1\n{}\nPrivate-MAC: 00",
    "https://alice:p@ss{}@pypi.corp/simple",
)  # fmt: skip
"""Sentences, commands, headers and addresses that hold a secret."""
NEAR = (
    "wandb:\n  key: {}", "the key for the cluster, {}, is refused", "a new secret <{}>", "令牌（旧）{}",
    "password rotated to {}",
)  # fmt: skip
"""No known form, but near the name of a secret."""
LOOKS = "7mnXm4gi4piUfqygB18AIYTimzORZb"
"""What looks like nothing but a secret."""
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
--max_new_tokens 512 --pad_token_id 151643 --num_tokens 8 key_padding_mask tokenizer_revision special_tokens
token: 1.2e9
eos_token: "</s>"
password-free login; passed: 3; pass@1: 0.53; pass_rate: 0.5; one forward pass: `torch.isnan(a1b2c3d4(x))`
name: token_loss value: 0.53 {"name": "eos_token", "value": "<|im_end|>"} {"name": "lr", "value": "1e-5"}
{"name": "password", "type": "string"} {"name": "WANDB_API_KEY", "value": ""} 
{"name": "HF_TOKEN"} {"value": "Qwen2a3b4c5d"}
PWD=/data/run OLDPWD=/data pwd: /home/user/x; cd $PWD
HF_TOKEN is not set; WANDB_API_KEY not configured;
OPENAI_API_KEY environment variable; set HF_TOKEN before python3.10 train.py
| HF_TOKEN | required | | token | step-1000 | | WANDB_API_KEY | your key |
the password is required; the token is missing; the first token is Qwen2.5-7B-Instruct; API key: see the docs of v2.0
密码为空 令牌为 32000 每个令牌：0.5 密钥：请填写 token：带适配器、合并后、`model.disable_adapter()` 密码错误
storage_key = "cond_frame_outputs" AUTH_KEY = "xet-auth" auth: httpx.Auth SORT_KEY=created_at
parser.add_argument("--hub_token", type=str) parser.add_argument("--api_key",
run run-20240101_120000-1a2b3c4d https://wandb.ai/team/project/runs/1a2b3c4d checkpoint-1000 global_step_1000
cache key 0123456789abcdef0123456789abcdef01234567 token hash 0123456789abcdef0123456789abcdef
key: /data/Qwen2a3b4c5d6e7f8g9h0i1j2k token https://h/aB3dE5gH7jK9mN1pQ3sT5vX7zA9 key Qwen2.5-VL-7B-Instruct-AWQ-int4
Cookie: enabled; cookies: true; curl -u; ssh login -p 2222 host; mysql -p db; docker login registry; sudo -S
hf_oauth_expiration_minutes: 480 fw_version pplx-70b-online dapi_mode SECTION
SG.net LTAI AKID secret_name_of_v1 t5-3b/sk-1
-----BEGIN CERTIFICATE----- LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMrZ0F3SUJBZ0lCQURB
signature=inspect_the_signature_of_it; f(signature=aB3dE5gH7jK9mN1pQ3sT5vX7)
"""


@every_case("context", CONTEXTS)
@every_case("kind", SHAPES)
def test_a_known_shape_of_secret_is_masked_in_every_context(kind: str, context: str) -> None:
    secret = SHAPES[kind]
    text = context.format(secret)
    masked = mask(text)
    assert secret[-12:] not in masked.text
    assert sum(masked.counts.values()) == 1
    assert masked.text.replace("*", "") in text or len(masked.text) == len(text)


@every_case("context", KEYED)
def test_the_value_of_a_key_that_names_a_secret_is_masked(context: str) -> None:
    secret = BODY[:24]
    masked = mask(f"a line\n{context.format(secret)}\nanother")
    assert secret not in masked.text
    assert masked.text.startswith("a line\n")
    assert masked.text.endswith("\nanother")


@every_case("name", NAMES)
@every_case("notation", NOTATIONS)
def test_a_value_apart_from_its_name_is_masked(notation: str, name: str) -> None:
    text = f"a: 1\n{notation.format(name=name, value=LOOKS)}\nb: 2"
    masked = mask(text)
    assert masked.text == text.replace(LOOKS, "*" * len(LOOKS))
    assert mask(masked.text).text == masked.text


@every_case("context", [*FLAGS, *SAID, *NEAR])
def test_a_secret_in_a_command_a_sentence_or_a_header_is_masked(context: str) -> None:
    masked = mask(f"a line\n{context.format(LOOKS)}\nanother")
    assert LOOKS[:10] not in masked.text
    assert LOOKS[-10:] not in masked.text
    assert masked.text.startswith("a line\n")
    assert masked.text.endswith("\nanother")
    assert mask(masked.text).text == masked.text


def test_a_value_belongs_to_the_name_in_the_same_entry_alone() -> None:
    before = (
        "- name: MODEL\n  value: Qwen2a3b4c5d6e7\n- name: HF_TOKEN\n  valueFrom:\n    secretKeyRef:\n      key: token\n"
    )
    assert mask(before + "- name: LR\n  value: 1a2b3c4d5e6f\n").text == before + "- name: LR\n  value: 1a2b3c4d5e6f\n"
    assert (
        mask('{"value": "aB3dE5gH7jK9"}, {"name": "HF_TOKEN"}').text
        == '{"value": "aB3dE5gH7jK9"}, {"name": "HF_TOKEN"}'
    )


def test_a_long_value_before_and_behind_its_name_is_masked_whole() -> None:
    value = LOOKS * 20
    for text in (f"- name: HF_TOKEN\n  value: {value}", f"- value: {value}\n  name: HF_TOKEN", f"HF_TOKEN {value}"):
        assert mask(text).text == text.replace(value, "*" * len(value))


def test_all_lines_of_a_block_are_masked_if_the_name_says_that_it_is_secret() -> None:
    assert mask("password: |\n  one two\n  three\nlr: 1").text == "password: |\n  *******\n  *****\nlr: 1"
    assert mask("hf_token: |\n  aB3dE5gH7\n  echo\nlr: 1").text == "hf_token: |\n  *********\n  echo\nlr: 1"


def _token_samples() -> Iterator[tuple[str, str]]:
    for token in load_table("secret_shapes.toml")["tokens"]:
        for prefix in token["prefixes"]:
            body = token["body"] if "(?P<secret>" in token["body"] else f"(?P<secret>{token['body']})"
            for text, secret in samples(re.escape(prefix) + body, re.ASCII):
                yield f"using {text} now", secret


def _shape_samples() -> Iterator[tuple[str, str]]:
    table = load_table("secret_shapes.toml")
    for shapes, flags in ((table["shapes"], 0), (table["folded"], re.IGNORECASE)):
        for shape in shapes:
            yield from samples(shape["pattern"], flags)


def test_every_alternative_of_every_shape_is_found_in_a_text() -> None:
    shown = [
        (text, secret)
        for text, secret in (*_token_samples(), *_shape_samples())
        if secret in mask(text).text and not re.fullmatch(r"[*\s]*", secret)
    ]
    assert shown == []


@every_case(
    "before",
    [
        "\\n", "\\t", "\\r\\n", "a\\n", "\x1b[32m", "\x1b[0;1m", "\x1b[K", "\\u001b[32m", "\\u0026", "\\x1b", "\\033",
        "%3D", "令牌", "_", "=", "@",
    ],
)  # fmt: skip
@every_case("kind", SHAPES)
def test_a_token_is_masked_behind_what_is_no_part_of_a_word(kind: str, before: str) -> None:
    secret = SHAPES[kind]
    assert secret[-12:] not in mask(f"x {before}{secret}").text


@every_case("broken", ["\u200b", "\u00ad", "\ufeff", "\x1b[0m", "\x1b[01;31m\x1b[K", "\\u001b[32m", "\\x1b[0m"])
@every_case("at", [2, 9, 20])
def test_a_token_that_a_colour_or_an_invisible_character_breaks_is_masked_whole(broken: str, at: int) -> None:
    secret = SHAPES["huggingface_token"]
    keyed = f"HF_TO{broken}KEN={BODY[:5]}{broken}{BODY[5:20]}"
    text = f"Token: {secret[:at]}{broken}{secret[at:]} was refu{broken}sed, {keyed}"
    once = mask(text)
    assert secret[-10:] not in once.text
    assert secret[10:20] not in once.text
    assert BODY[5:20] not in once.text
    assert len(once.text) == len(text)
    assert "was refu" in once.text
    assert mask(once.text).text == once.text


@every_case("context", ["--use_wandb {}", "wandb login {}", "wandb.login(key='{}')", "use_wandb: {}"])
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


PEM_LINES = (*(base64.b64encode(random.Random(n).randbytes(48)).decode() for n in range(3)), "aB3d+Q==")
PREFIXED = (
    "{}", "[rank0]: {}", "2026-01-01 12:00:00 INFO {}", "  | {}", '"{}\\n"', '    "{}" + \\', "{}\r",
)  # fmt: skip


@every_case("prefix", PREFIXED)
@every_case("marks", [("BEGIN", "END"), ("BEGIN",), ("END",)])
def test_a_private_key_is_masked_behind_prefixes_and_without_one_of_its_marks(
    marks: tuple[str, ...], prefix: str
) -> None:
    lines = [f"-----{mark} RSA PRIVATE KEY-----" if mark in marks else "" for mark in ("BEGIN", "END")]
    key = "\n".join(prefix.format(line) for line in (lines[0], *PEM_LINES, lines[1]) if line)
    text = f"loading AutoModelForCausalLM1234567\n{key}\nTraceback (most recent call last):\n  File"
    once = mask(text)
    for line in PEM_LINES:
        assert line not in once.text
    assert once.text.startswith("loading AutoModelForCausalLM1234567\n")
    assert once.text.endswith("\nTraceback (most recent call last):\n  File")
    assert mask(once.text).text == once.text


def test_a_private_key_in_one_line_or_with_headers_is_masked() -> None:
    body = "\\n".join(PEM_LINES)
    headers = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{PEM_LINES[0]}"
    for text in (
        f'"-----BEGIN PRIVATE KEY-----\\n{body}',
        f"{body}\\n-----END PRIVATE KEY-----",
        headers,
        f"x\n{body}-----END PRIVATE KEY-----",
    ):
        assert not any(line in mask(text).text for line in PEM_LINES)


def test_the_lines_around_a_mark_alone_stay() -> None:
    for text in (
        "expected\n-----END PRIVATE KEY-----\nnot 'a'", "-----BEGIN PRIVATE KEY-----(none)\nloss 1",
        "a\n\n-----END PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nRuntimeError: no key",
        "-----BEGIN PRIVATE KEY-----",
    ):  # fmt: skip
        assert mask(text).text == text


def test_a_private_key_without_its_end_mark_ends_where_the_prefix_of_its_lines_does() -> None:
    lines = [f"2026-01-01 12:00:0{number} [rank0]: {line}" for number, line in enumerate(PEM_LINES[:3])]
    text = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, f"loaded shard {LOOKS}", "loss 1"])
    assert mask(text).text.endswith(f"\nloaded shard {LOOKS}\nloss 1")
    text = "\n".join(["loss 1", f"loaded shard {LOOKS}", *lines, "-----END PRIVATE KEY-----"])
    assert mask(text).text.startswith(f"loss 1\nloaded shard {LOOKS}\n2026-01-01 12:00:00 [rank0]: ***")


def test_a_very_long_key_without_marks_is_masked_as_far_as_keys_go() -> None:
    many = "\n".join(PEM_LINES[:1] * 500)
    for text in (f"-----BEGIN PRIVATE KEY-----\n{many}", f"{many}\n-----END PRIVATE KEY-----"):
        assert mask(text).text.count(PEM_LINES[0]) == 100


def test_encoded_keys_and_logins_are_masked() -> None:
    key = base64.b64encode(f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}{BODY}".encode()).decode()
    login = base64.b64encode(b"alice:" + BODY.encode()).decode()
    auths = base64.b64encode(b'{"auths": {"r": {"auth": "' + login.encode() + b'"}}}').decode()
    for text, secret in (
        (f"client-key-data: {key}", key[20:]),
        (f"x {key[:64]}\n  {key[64:]}", key[70:]),
        (f'{{"auths": {{"registry": {{"auth": "{login}"}}}}}}', login),
        (f".dockerconfigjson: {auths}", auths[20:]),
        (f"x {auths}", auths[20:]),
    ):
        assert secret not in mask(text).text


@every_case("line", CLEAN.strip().splitlines())
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


@given(
    st.lists(st.sampled_from([*NOTATIONS, "x: 1", "\x1b[0m", "\\n"]), max_size=4),
    st.sampled_from(NAMES),
    st.sampled_from(NOTATIONS),
)
def test_a_value_apart_from_its_name_never_survives_among_other_text(
    around: list[str], name: str, notation: str
) -> None:
    text = "\n".join(
        [*(c.format(name="LR", value="1e-5") for c in around), notation.format(name=name, value=LOOKS), "end"]
    )
    once = mask(text)
    assert LOOKS not in once.text
    assert mask(once.text).text == once.text


@every_case(
    "hostile", [
        "a@", "wandb ", "token", "://a:", "eyJaaaaaaaaaa.", "password ", "authorization: ", "-eyJ", "name: token\n",
        "name: token\nvalue ", "sk-", "gsk_", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n\n", "curl -u ", "mysql -", "login(\"", "docker login ", "HF_TOKEN ",
        "HF_TOKEN:\n  ", "a\x1b[0m", "a\u200b", "api key ", "key: |\n  ", "secret_a", "index https://", "value: a ",
        "Private-Lines: 1\nabcd\n", "machine a login ", "- name: token\n- value: ", "password: |\n ", "token is ",
        "hf_", "auth=('a', ", "cookie:",
    ],
)  # fmt: skip
def test_hostile_repetition_takes_linear_time(hostile: str) -> None:
    started = time.thread_time()
    mask(hostile * (100_000 // len(hostile)))
    assert time.thread_time() - started < 4
