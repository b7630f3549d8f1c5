-- name: add
-- Add messages to rows.
INSERT INTO dmarc_rows (account_id, is_authenticated, day, domain, reporter, source, header_from, disposition, dkim, spf,
    messages)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::bigint[], $11::bigint[])
ON CONFLICT (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf)
DO UPDATE SET messages = dmarc_rows.messages + excluded.messages;
