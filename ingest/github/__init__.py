"""Issues and discussions of GitHub: what its API returns, and the API itself."""
