-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls, stage,
    verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bigint[])
ON CONFLICT DO NOTHING;
