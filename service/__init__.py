"""From a paste to a grounded answer: retrieval, diagnosis, composition, history, and the HTTP API over them."""
