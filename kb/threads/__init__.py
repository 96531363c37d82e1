"""Write-ups and issue threads as they are, beside the curated pages: searchable, quoted, never more than reported."""
