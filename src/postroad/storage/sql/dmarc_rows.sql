-- name: count
-- How many rows there are about a day, and how many of them from a reporter.
SELECT COUNT(*), COALESCE(SUM(CASE WHEN reporter = $5 THEN 1 ELSE 0 END), 0) FROM dmarc_rows
WHERE account_id = $1 AND domain = $2 AND day = $3 AND is_authenticated = $4;

-- name: add
-- Add messages to a row.
INSERT INTO dmarc_rows (account_id, is_authenticated, day, domain, reporter, source, header_from, disposition, dkim, spf,
    messages)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf)
DO UPDATE SET messages = dmarc_rows.messages + excluded.messages;

-- name: sources
-- What authenticated reports count since a day.
SELECT day, reporter, source, dkim, spf, CAST(SUM(messages) AS BIGINT) FROM dmarc_rows
WHERE account_id = $1 AND domain = $2 AND day >= $3 AND is_authenticated = 1 GROUP BY day, reporter, source, dkim, spf;

-- name: reporters
-- Who sent authenticated reports since a day, the largest first.
SELECT reporter, CAST(SUM(messages) AS BIGINT),
    CAST(SUM(CASE WHEN dkim = 1 OR spf = 1 THEN messages ELSE 0 END) AS BIGINT)
FROM dmarc_rows WHERE account_id = $1 AND domain = $2 AND day >= $3 AND is_authenticated = 1
GROUP BY reporter ORDER BY 2 DESC, reporter LIMIT $4;

-- name: passed
-- How many messages reports count since a day, and how many of them passed.
SELECT CAST(COALESCE(SUM(messages), 0) AS BIGINT),
    CAST(COALESCE(SUM(CASE WHEN dkim = 1 OR spf = 1 THEN messages ELSE 0 END), 0) AS BIGINT)
FROM dmarc_rows WHERE account_id = $1 AND domain = $2 AND day >= $3 AND is_authenticated = $4;

-- name: sweep
-- Old rows, up to a limit.
DELETE FROM dmarc_rows
WHERE (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf) IN (
    SELECT account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf
    FROM dmarc_rows WHERE day <= $1 ORDER BY day LIMIT $2);
