"""How numbers are written where the framework's own custom is another than the language's."""
