"""A provider whose tasks run for ever: `python -m tests.benchmarks.polling_provider SECONDS_AN_ANSWER`."""

import asyncio
import json
import sys


async def _serve(latency_s: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(latency_s)
                task = head.split(b" ", 2)[1].rpartition(b"/")[2].decode()
                body = json.dumps({"id": task, "model": "seedance", "status": "running"}).encode()
                lines = (b"HTTP/1.1 200 OK", b"Content-Type: application/json")
                length = b"Content-Length: " + str(len(body)).encode()
                writer.write(b"\r\n".join([*lines, length, b"", b""]) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)  # ends with standard input


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
