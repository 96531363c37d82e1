"""Candidates for known defects, harvested from the fix commits of the packages' own history."""
