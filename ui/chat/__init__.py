"""The chat UI in the browser: Gradio pages mounted on the service. Nothing here is imported before it is used."""
