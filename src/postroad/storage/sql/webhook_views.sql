-- name: counts
-- How many deliveries are not final, by state, and when the first of each is due. Ready ones are summed by endpoint
-- first, from the index alone. Deliveries of removed endpoints are not counted.
SELECT CASE WHEN enabled = 1 THEN 'ready' ELSE 'held' END AS state, CAST(SUM(deliveries) AS BIGINT), MIN(due_at)
FROM (SELECT webhook_id, COUNT(*) AS deliveries, MIN(due_at) AS due_at
    FROM webhook_deliveries WHERE state = 'ready' GROUP BY webhook_id) AS piles
JOIN webhooks ON webhooks.id = piles.webhook_id
WHERE removed_at IS NULL GROUP BY enabled
UNION ALL
SELECT 'waiting', COUNT(*), MIN(due_at) FROM webhook_deliveries WHERE state = 'waiting' HAVING COUNT(*) > 0;
