-- name: create
INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, temporary)
VALUES (%(thread_id)s, %(owner)s, %(metadata)s::jsonb ->> 'graph_id', %(metadata)s, %(temporary)s)
ON CONFLICT (thread_id) DO NOTHING RETURNING *

-- name: recent
SELECT 1 FROM crag_threads
WHERE owner = %(owner)s AND NOT temporary
  AND created_at > now() - make_interval(secs => %(minute)s)
LIMIT %(most)s

-- name: get
SELECT * FROM crag_threads WHERE thread_id = %(thread_id)s AND owner = %(owner)s

-- name: search
-- What is in braces is filled in by the caller. Clients see the graph among the metadata.
SELECT * FROM crag_threads
WHERE owner = %(owner)s AND NOT temporary
  AND (%(metadata)s::jsonb IS NULL OR (metadata ||
       jsonb_strip_nulls(jsonb_build_object('graph_id', graph_id))) @> %(metadata)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(ids)s::uuid[] IS NULL OR thread_id = ANY(%(ids)s))
ORDER BY {by} {order}, thread_id LIMIT %(limit)s OFFSET %(offset)s

-- name: update
UPDATE crag_threads SET metadata = metadata || %(metadata)s, updated_at = now()
WHERE thread_id = %(thread_id)s AND owner = %(owner)s RETURNING *

-- name: settle
UPDATE crag_threads SET updated_at = now(),
  status = CASE WHEN status = 'busy' THEN status ELSE %(status)s END
WHERE thread_id = %(thread_id)s AND owner = %(owner)s RETURNING *

-- name: hold
SELECT 1 FROM crag_threads WHERE thread_id = %(thread_id)s AND owner = %(owner)s FOR KEY SHARE

-- name: delete
-- This waits for whoever is writing. Checkpoints go in a statement after it, which sees the last.
DELETE FROM crag_threads WHERE thread_id = %(thread_id)s AND owner = %(owner)s
RETURNING ARRAY(SELECT run_id FROM crag_runs WHERE thread_id = %(thread_id)s) AS runs

-- name: forget
-- Tables of langgraph-checkpoint-postgres, which does not delete several threads.
WITH blobs AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = ANY(%(threads)s::text[])
), writes AS (
    DELETE FROM checkpoint_writes WHERE thread_id = ANY(%(threads)s::text[])
)
DELETE FROM checkpoints WHERE thread_id = ANY(%(threads)s::text[])

-- name: copy
-- langgraph-checkpoint-postgres does not copy threads. Whatever columns its tables have are copied.
WITH copied AS (
    SELECT jsonb_build_object('thread_id', %(new)s::text) AS thread
), saved AS (
    INSERT INTO checkpoints SELECT (jsonb_populate_record(old, copied.thread)).*
    FROM checkpoints AS old, copied WHERE thread_id = %(thread_id)s::text
), blobs AS (
    INSERT INTO checkpoint_blobs SELECT (jsonb_populate_record(old, copied.thread)).*
    FROM checkpoint_blobs AS old, copied WHERE thread_id = %(thread_id)s::text
), writes AS (
    INSERT INTO checkpoint_writes SELECT (jsonb_populate_record(old, copied.thread)).*
    FROM checkpoint_writes AS old, copied WHERE thread_id = %(thread_id)s::text
)
INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, status)
SELECT %(new)s, owner, graph_id, metadata, CASE status WHEN 'busy' THEN 'idle' ELSE status END
FROM crag_threads WHERE thread_id = %(thread_id)s
RETURNING *
