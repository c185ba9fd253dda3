"""Django's PostgreSQL, which is asked whether it is still there only where it has said something.

A server that ends a session says so, or at least closes the line: both can be read. As long as there is
nothing to read, the question before each request and task would cost a round trip, and always get the same
answer; one that fell silent on the way would not answer it either."""

import select

from django.db.backends.postgresql import base
from psycopg import pq


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        line = self.connection.pgconn
        stands = line.status == pq.ConnStatus.OK and line.transaction_status != pq.TransactionStatus.INERROR
        return (stands and not _has_spoken(line.socket)) or super().is_usable()


def _has_spoken(socket: int) -> bool:
    poll = select.poll()  # `select` takes no numbers above a thousand
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
