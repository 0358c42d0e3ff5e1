"""One web application: the page, questions as a stream, documents, OpenAI's protocol, and MCP."""
