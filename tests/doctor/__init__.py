"""Tests of `ui.doctor`, and the folders of runs that they read."""
