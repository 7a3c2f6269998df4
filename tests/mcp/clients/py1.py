"""The official Python SDK 1.x: the initialize era, still what many agent frameworks pin."""

import asyncio

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from shared import HEADERS, URL, calls, run, say, say_answer


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
            for tool, args in calls():
                say_answer(tool, await session.call_tool(tool, args))


run(lambda main: asyncio.run(main()), main)
