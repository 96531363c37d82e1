"""What first messages state, labelled by hand before any reader ran, and how much of it is read."""
