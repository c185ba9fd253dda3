"""Which ended attempts are samples of how well their supply does, and which of these are successes.

One text for every statement that counts them; each calls the table `attempt`. What was refused for its
content or request, what was cancelled and what was never sent says nothing of a supply."""

from typing import Final

SUCCESS: Final = "attempt.generated_at IS NOT NULL"
FAILURE: Final = """(attempt.generated_at IS NULL
    AND attempt.state IN ('failed', 'abandoned') AND attempt.request_started_at IS NOT NULL
    AND attempt.error_category IN ('supply', 'capacity', 'unknown'))"""
SAMPLE: Final = f"({SUCCESS} OR {FAILURE})"
