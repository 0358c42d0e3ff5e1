"""A page to ask and watch, served by the LangGraph server itself."""
