-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls, stage,
    verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt, source)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bigint[],
    $18::text[])
ON CONFLICT DO NOTHING;

-- name: latest_ends_of_message
-- How the latest attempts of messages ended, latest first, each with the beginning of its reply.
SELECT latest.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::int[]) AS wanted (account_id, message_id, most, characters)
CROSS JOIN LATERAL (
    SELECT recipient_id, started_at + duration, verdict, smtp_code, substr(response, 1, wanted.characters)
    FROM attempts WHERE attempts.account_id = wanted.account_id AND attempts.message_id = wanted.message_id
    ORDER BY started_at DESC LIMIT wanted.most
) AS latest;

-- name: last_ends_of_message
-- When the last attempt for each recipient of messages ended.
SELECT recipient_id, max(started_at + duration)
FROM attempts WHERE (account_id, message_id) IN (SELECT * FROM unnest($1::text[], $2::text[])) GROUP BY recipient_id;

-- name: insert_conversations
-- What was said in attempts; a repeated one is ignored.
INSERT INTO attempt_conversations (account_id, message_id, recipient_id, started_at, conversation)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) ON CONFLICT DO NOTHING;
