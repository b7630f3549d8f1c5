-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls, stage,
    verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bigint[])
ON CONFLICT DO NOTHING;

-- name: ends_of_message
-- How the attempts of messages ended, in order.
SELECT message_id, recipient_id, started_at + duration, verdict, smtp_code, response
FROM attempts WHERE (account_id, message_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
ORDER BY message_id, recipient_id, started_at;

-- name: insert_conversations
-- What was said in attempts; a repeated one is ignored.
INSERT INTO attempt_conversations (account_id, message_id, recipient_id, started_at, conversation)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) ON CONFLICT DO NOTHING;
