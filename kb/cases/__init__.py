"""The incidents and artefacts we know: one bilingual page each, see README.md."""
