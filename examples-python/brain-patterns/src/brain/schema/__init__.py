"""From type hints to JSON Schema, and from JSON to the values that the hints promise. Not public: use ``brain.patterns``."""
