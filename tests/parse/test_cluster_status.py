"""What a cluster says of a job is read like a log: it is neither configuration nor a list of packages."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

DESCRIPTION = """\
Name:             trainer-0
Namespace:        ml
Containers:
  trainer:
    Image:          registry.example/train:1
    Last State:     Terminated
      Reason:       {reason}
      Exit Code:    {code}
    Limits:
      memory:          64Gi
      nvidia.com/gpu:  8
"""
KILLED = DESCRIPTION.format(reason="OOMKilled", code=137)
STATE = KILLED.partition("1\n")[2]
STATUS = "status:\n  containerStatuses:\n  - name: trainer\n    state:\n      terminated:\n        exitCode: 137\n"
PODS = "NAME        READY   STATUS      RESTARTS   AGE\ntrainer-0   0/1     OOMKilled   3          1m\n"
SACCT = """\
JobID           JobName  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- --------
4711            llm-sft         64 OUT_OF_ME+    0:125
4711.0             bash         64 CANCELLED+      0:9
"""
INSPECTED = '{"State": {"Status": "exited", "OOMKilled": true, "ExitCode": 137}}\n'


def kinds(evidence: Evidence) -> list[str]:
    return [signal.kind for signal in evidence.signals]


@every_case("text", [KILLED, STATE, STATUS, PODS, SACCT])
@every_case("way", ["fenced", "pasted", "file"])
def test_a_job_that_was_killed_for_its_memory_is_recognised(text: str, way: str) -> None:
    if way == "file":
        evidence = parse("why?", (Attachment(name="status.yaml" if text is STATUS else "status.txt", content=text),))
    else:
        evidence = parse(f"why?\n```\n{text}```" if way == "fenced" else f"why?\n\n{text}\nnothing else changed")
    assert kinds(evidence) == ["cpu_oom_killed"]
    assert {region.kind for region in evidence.regions} == {"prose", "log"}
    assert not evidence.versions
    assert not any(run.options for run in evidence.runs)


@every_case(
    "text",
    [
        DESCRIPTION.format(reason="Completed", code=0),
        DESCRIPTION.format(reason="Error", code=1),
        INSPECTED.replace("true", "false").replace("137", "1"),
        SACCT.replace("OUT_OF_ME+", " COMPLETED"),
    ],
)
def test_another_ending_is_none(text: str) -> None:
    assert kinds(parse(f"why?\n```\n{text}```")) == []


@every_case("text", ["Name: my-run\nlearning_rate: 1e-5\n", "State: done\nlearning_rate: 1e-5\n"])
def test_a_configuration_with_such_a_key_stays_one(text: str) -> None:
    evidence = parse("why?", (Attachment(name="train.yaml", content=text),))
    assert any(run.options for run in evidence.runs)
