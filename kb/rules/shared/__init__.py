"""Code shared by rule modules. The examples on the rules' pages test it."""
