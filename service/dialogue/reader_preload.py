"""Loads the readers, with every framework's tables, into the server that reading processes are forked from.

`service.dialogue.reading` starts it: what is loaded here, its processes share and no question waits for.
"""

from trainmedic.kb.frameworks.canonical import warm
from trainmedic.kb.parse.pipeline import parse

parse("torchrun train.py --lr 1e-5\n\n```yaml\nlr: 1e-5\n```\n{'loss': 1.0, 'grad_norm': 2.0}\nValueError: x\n")
warm()
