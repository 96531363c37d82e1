"""What there is on this machine of a run, found and read without being told where: `target` whose run, `collect` what
is taken, `answering` what it means, `bundle` what can be sent."""
