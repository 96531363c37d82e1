"""The knowledge on disk: embedder, chunks, lexical and FAISS index, and the manifest that ties them together."""
