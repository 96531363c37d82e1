"""Feishu and Lark: events over HTTP, answers as cards."""
