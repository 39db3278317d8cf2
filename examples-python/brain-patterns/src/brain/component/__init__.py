"""A tool inside of a component. What ``brain.build`` compiles imports it; nobody else does."""
