"""The knowledge on disk: embedder, chunks, the lexical and the FAISS index, and the manifest that ties them together."""
