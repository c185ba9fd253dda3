"""Thousands stand apart by a comma, as the Unicode locale data have it; the framework writes none."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
