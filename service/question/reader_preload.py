"""Loads the readers into the server that the processes of `service.question.reading` are forked from."""

from trainmedic.kb.parse.pipeline import parse

parse("torchrun train.py --lr 1e-5\n\n```yaml\nlr: 1e-5\n```\n{'loss': 1.0, 'grad_norm': 2.0}\nValueError: x\n")
