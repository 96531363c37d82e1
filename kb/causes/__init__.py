"""The causes we know, with the checks that find them: one page each, see README.md."""
