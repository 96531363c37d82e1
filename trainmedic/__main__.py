"""``python -m trainmedic``: the command line."""

from trainmedic.ui.cli import command

if __name__ == "__main__":
    command()
