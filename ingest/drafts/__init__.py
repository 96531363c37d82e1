"""Draft cases of write-ups: what a write-up says, where it says so, and what of it contradicts the knowledge."""
