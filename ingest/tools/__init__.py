"""What only the repository needs: option catalogues, the embedding model, digests of the sources. Not in the wheel."""
