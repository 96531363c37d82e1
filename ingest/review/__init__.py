"""From a draft to a published page: decisions, duplicates, and the pages of a team."""
