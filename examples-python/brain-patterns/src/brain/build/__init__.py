"""Compiles tools to components: ``python -m brain.build tool.py``. Needs ``pip install "brain-patterns[build]"``."""
