"""What a change of the catalogue is refused for; the messages say what to do."""


class CatalogueError(ValueError):
    """One fact cannot be saved; `path` leads to it inside its entry, e.g. `bindings[0].supply`."""

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(message)


class StaleRevision(Exception):
    """Somebody saved first: look at what is stored now (`actual`; None: not there), then save again."""

    def __init__(self, subject: str, expected: int | None, actual: int | None) -> None:
        self.subject, self.expected, self.actual = subject, expected, actual
        super().__init__(
            f"{subject} is at revision {actual}, not {expected}: somebody saved it meanwhile; "
            "load it again and repeat the change"
        )
