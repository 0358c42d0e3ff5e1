# The page, the API, MCP and the chat endpoint on port 2024; the index is mounted at /index.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY graph graph
COPY nodes nodes
COPY papers papers
COPY prompts prompts
RUN python -m venv /opt/crag \
    && /opt/crag/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve]'

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home crag && install --directory --owner crag /index
COPY --from=build /opt/crag /opt/crag
ENV PATH=/opt/crag/bin:$PATH \
    CRAG_INDEX=/index/chunks
USER 10001
WORKDIR /home/crag
VOLUME ["/index"]
EXPOSE 2024
HEALTHCHECK --start-period=2m CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:2024/ok')"]
ENTRYPOINT ["crag"]
CMD ["serve", "--host", "0.0.0.0"]
