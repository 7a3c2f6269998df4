"""The official Python SDK 2.x. WAGGLE_MCP_ERA as for ts2.mjs."""

import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from shared import ERA, HEADERS, URL, converse, run, say


session_ids = []


async def note_session(response):
    if "mcp-session-id" in response.headers:
        session_ids.append(response.headers["mcp-session-id"])


async def main():
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60, event_hooks={"response": [note_session]}) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=ERA) as client:
            tools = (await client.list_tools()).tools
            say(
                {
                    "protocol": str(client.protocol_version),
                    "session": next(iter(session_ids), None),
                    # a client that is pinned to a revision never asks who the server is
                    "server": client.server_info.name if client.server_info else None,
                    "tools": [tool.name for tool in tools],
                }
            )
            await converse(client.call_tool)


run(lambda main: asyncio.run(main()), main)
