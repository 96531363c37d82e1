"""What is told of requests from outside: the spans of their traces."""
