"""Measurements, each a ratio against a reference in the same run; `manage.py bench [NAME…]` runs them.

A module here that has a `run(plan)` is a benchmark by its name. They are no tests: pytest finds none.
"""
