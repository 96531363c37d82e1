"""What `trainmedic doctor` collects on the machine of a run."""
