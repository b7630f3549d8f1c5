-- name: now
-- The time, in microseconds since 1970, at this moment and not at the start of the transaction.
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT);
