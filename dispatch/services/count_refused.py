"""Counts a job that was refused because its public model is out of production."""

from django.db import connection

_SQL = """
INSERT INTO dispatch_refusedmeanwhile AS counted (public_model_id, jobs)
SELECT id, 1 FROM catalog_publicmodel WHERE slug = %s
ON CONFLICT (public_model_id) DO UPDATE SET jobs = counted.jobs + 1
"""


def count_refused(slug: str) -> None:
    """One statement: many may be refused at once."""
    with connection.cursor() as cursor:
        cursor.execute(_SQL, [slug])
