"""The production server: the graphs behind LangGraph's API, with all state in PostgreSQL.

`langgraph dev` keeps threads in the memory of one process. Here every thread, run and stream is a
row: any process serves any request, and what a killed process was doing is taken up by another.
It speaks the part of the API that `langgraph_sdk` and the page use.
"""
