-- name: mine
-- The lock is added by who needs the row: one that writes for the run shares it, its end does not.
SELECT run_id, thread_id, cancel FROM crag_runs
WHERE run_id = %(run_id)s AND worker = %(worker)s AND attempt = %(attempt)s AND status = 'running'

-- name: lock_thread
SELECT owner FROM crag_threads WHERE thread_id = %(thread_id)s FOR NO KEY UPDATE

-- name: count
SELECT count(*) FILTER (WHERE status = 'pending') AS waiting,
       count(*) FILTER (WHERE owner = %(owner)s) AS own
FROM crag_runs WHERE status IN ('pending', 'running')

-- name: create
WITH graph AS (
    -- Clients search for the threads of an assistant by its id in their metadata.
    UPDATE crag_threads SET graph_id = %(graph_id)s,
        metadata = metadata || jsonb_build_object('assistant_id', %(assistant_id)s::text)
    WHERE thread_id = %(thread_id)s
)
INSERT INTO crag_runs
    (run_id, thread_id, owner, assistant_id, graph_id, request, metadata, multitask_strategy)
VALUES (gen_random_uuid(), %(thread_id)s, %(owner)s, %(assistant_id)s, %(graph_id)s, %(request)s,
        %(metadata)s, %(strategy)s)
RETURNING *

-- name: get
SELECT * FROM crag_runs
WHERE run_id = %(run_id)s AND thread_id = %(thread_id)s AND owner = %(owner)s

-- name: search
SELECT * FROM crag_runs
WHERE thread_id = %(thread_id)s AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY place DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: lock
SELECT * FROM crag_runs WHERE run_id = %(run_id)s FOR UPDATE

-- name: lock_unfinished
SELECT * FROM crag_runs
WHERE thread_id = %(thread_id)s AND status IN ('pending', 'running')
ORDER BY place FOR UPDATE

-- name: cancel
UPDATE crag_runs SET cancel = %(cancel)s WHERE run_id = %(run_id)s

-- name: delete
DELETE FROM crag_runs WHERE run_id = %(run_id)s AND status NOT IN ('pending', 'running')
RETURNING run_id

-- name: claim
UPDATE crag_runs SET status = 'running', worker = %(worker)s, attempt = attempt + 1,
    lease = now() + make_interval(secs => %(lease)s), updated_at = now()
WHERE run_id = (
    SELECT run_id FROM crag_runs AS r
    WHERE status = 'pending' AND NOT EXISTS (
        SELECT 1 FROM crag_runs AS before
        WHERE before.thread_id = r.thread_id AND (before.status = 'running' OR
              (before.status = 'pending' AND before.place < r.place))
    )
    ORDER BY (SELECT count(*) FROM crag_runs AS others
              WHERE others.status = 'running' AND others.owner = r.owner), place
    LIMIT 1 FOR UPDATE SKIP LOCKED
) AND status = 'pending'
RETURNING run_id, thread_id, assistant_id, graph_id, request::json, attempt, worker,
    extract(epoch FROM updated_at - created_at)::float8 AS waited

-- name: renew
-- A row that somebody has locked is left for the next time: who holds it may stand still.
WITH mine AS (
    SELECT run_id, cancel, number FROM crag_runs
    JOIN unnest(%(runs)s::uuid[], %(attempts)s::integer[]) WITH ORDINALITY
        AS claims (run_id, attempt, number) USING (run_id, attempt)
    WHERE worker = %(worker)s AND status = 'running'
), free AS (
    SELECT run_id FROM crag_runs
    WHERE run_id IN (SELECT run_id FROM mine) AND worker = %(worker)s AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE crag_runs SET lease = now() + make_interval(secs => %(lease)s)
    WHERE run_id IN (SELECT run_id FROM free)
)
SELECT number, cancel FROM mine

-- name: release
UPDATE crag_runs SET lease = now(), attempt = attempt - 1
WHERE worker = %(worker)s AND status = 'running'

-- name: due
SELECT run_id, thread_id, status, attempt, cancel FROM crag_runs
WHERE status IN ('pending', 'running') AND lease < now()
  AND (%(run_id)s::uuid IS NULL OR run_id = %(run_id)s)

-- name: take_up
UPDATE crag_runs SET status = 'pending', worker = NULL, lease = NULL WHERE run_id = %(run_id)s

-- name: end
UPDATE crag_runs SET status = %(status)s, error = %(error)s, worker = NULL, lease = NULL,
    updated_at = now()
WHERE run_id = %(run_id)s

-- name: roll_back
-- The checkpoints that a run made go with it, so that its thread is as it was before.
WITH run AS (
    DELETE FROM crag_runs WHERE run_id = %(run_id)s
), made AS (
    DELETE FROM checkpoints
    WHERE thread_id = %(thread_id)s::text AND metadata ->> 'run_id' = %(run_id)s::text
    RETURNING thread_id, checkpoint_ns, checkpoint_id
)
DELETE FROM checkpoint_writes AS w USING made
WHERE (w.thread_id, w.checkpoint_ns, w.checkpoint_id)
    = (made.thread_id, made.checkpoint_ns, made.checkpoint_id)

-- name: settle
-- The first unfinished run of the thread waits for a process from now on, those behind it for it.
WITH first AS (
    UPDATE crag_runs SET lease = now() + make_interval(secs => %(seconds)s)
    WHERE lease IS NULL AND attempt = 0 AND run_id = (
        SELECT run_id FROM crag_runs
        WHERE thread_id = %(thread_id)s AND status IN ('pending', 'running') ORDER BY place LIMIT 1)
)
UPDATE crag_threads SET updated_at = now(), error = %(error)s, status = CASE
    WHEN EXISTS (SELECT 1 FROM crag_runs
                 WHERE thread_id = %(thread_id)s AND status IN ('pending', 'running')) THEN 'busy'
    WHEN %(error)s::text IS NOT NULL THEN 'error'
    ELSE %(status)s END
WHERE thread_id = %(thread_id)s

-- name: append
INSERT INTO crag_run_events (run_id, place, event, data)
SELECT %(run_id)s, number + coalesce(
    (SELECT max(place) FROM crag_run_events WHERE run_id = %(run_id)s), 0), event, data
FROM unnest(%(events)s::text[], %(data)s::text[]) WITH ORDINALITY AS new (event, data, number)

-- name: after
-- No row for a run that was removed, and one without a place where there is no part after that one.
SELECT status, part.* FROM crag_runs LEFT JOIN (
    SELECT place, event, data FROM crag_run_events
    WHERE run_id = %(run_id)s AND place > %(place)s ORDER BY place LIMIT 200
) AS part ON true
WHERE run_id = %(run_id)s ORDER BY part.place

-- name: sweep_streams
DELETE FROM crag_run_events WHERE run_id IN (
    SELECT run_id FROM crag_runs AS r
    WHERE status NOT IN ('pending', 'running')
      AND updated_at < now() - make_interval(secs => %(seconds)s)
      AND EXISTS (SELECT 1 FROM crag_run_events AS e WHERE e.run_id = r.run_id)
    FOR UPDATE SKIP LOCKED)

-- name: sweep_threads
DELETE FROM crag_threads WHERE thread_id IN (
    SELECT thread_id FROM crag_threads
    WHERE status <> 'busy'
      AND (temporary AND updated_at < now() - make_interval(secs => %(seconds)s)
        OR updated_at < now() - make_interval(days => %(days)s)
        OR thread_id IN (
            SELECT thread_id FROM (
                SELECT thread_id, row_number() OVER (
                    PARTITION BY owner ORDER BY updated_at DESC) AS place
                FROM crag_threads) AS newest_first
            WHERE place > %(most)s))
    FOR UPDATE SKIP LOCKED)
RETURNING thread_id
