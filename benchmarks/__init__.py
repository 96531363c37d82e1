"""Speed and quality, measured as ratios within one run. See README.md."""
