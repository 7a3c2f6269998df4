"""The official Python SDK 1.x: the initialize era, still what many agent frameworks pin."""

import asyncio

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from shared import HEADERS, URL, converse, run, say


async def main():
    async with streamablehttp_client(URL, headers=HEADERS) as (reader, writer, session_id):
        async with ClientSession(reader, writer) as session:
            hello = await session.initialize()
            tools = (await session.list_tools()).tools
            say(
                {
                    "protocol": hello.protocolVersion,
                    "session": session_id(),
                    "server": hello.serverInfo.name,
                    "tools": [tool.name for tool in tools],
                }
            )
            await converse(session.call_tool)


run(lambda main: asyncio.run(main()), main)
