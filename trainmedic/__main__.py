"""``python -m trainmedic``: the command line."""

import sys

from trainmedic.ui.cli import main

if __name__ == "__main__":
    sys.exit(main())
