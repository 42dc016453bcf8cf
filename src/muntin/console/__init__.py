"""The web console: live views of an engine in a browser, and queries added and dropped there.

It knows no engine, only a :class:`~muntin.console.source.ConsoleSource`, which each engine has.
Starlette and uvicorn are imported when a console is opened.
"""
