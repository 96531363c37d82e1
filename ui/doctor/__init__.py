"""Find and read the traces of a run on this machine, without being told where: `target` whose run, `collect` what
is taken, `answering` what it means, `bundle` what can be sent."""
