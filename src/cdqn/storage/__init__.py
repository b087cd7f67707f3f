"""Nested state and files on disk: written whole or not at all, read without running anything."""
