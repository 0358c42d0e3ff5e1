-- name: limit
-- A process that stands still loses its locks no later than its runs.
SELECT set_config('statement_timeout', %(statement_seconds)s::text || 's', false),
       set_config('lock_timeout', %(statement_seconds)s::text || 's', false),
       set_config('idle_in_transaction_session_timeout', %(lease_seconds)s::text || 's', false)

-- name: notify
SELECT pg_notify(%(channel)s, name) FROM unnest(%(names)s::text[]) AS name

-- name: lock
-- The key of the lock under which tables are made is the same in every version.
SELECT 1 WHERE pg_try_advisory_lock(x'63726173'::integer)

-- name: unlock
SELECT pg_advisory_unlock(x'63726173'::integer)

-- name: make_versions
CREATE TABLE IF NOT EXISTS crag_server (version integer PRIMARY KEY)

-- name: versions
SELECT version FROM crag_server

-- name: add_version
INSERT INTO crag_server VALUES (%(version)s)
