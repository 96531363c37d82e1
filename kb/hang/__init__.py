"""Why distributed training stands still: the evidence of all ranks, side by side. Pure, and executes nothing."""
