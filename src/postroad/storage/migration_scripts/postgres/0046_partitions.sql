-- compatible from: 12
-- Mail is partitioned by the time at which it was accepted, with which its id begins, so that retention can drop a
-- partition instead of deleting its rows. What is stored already becomes the first partition: nothing is copied, and
-- mail waits for a moment. The newest partition is open at its end, so that no message is ever refused for want of a
-- partition. No partition is ever renamed, because a `pg_dump` that has just begun would take one for another.
-- `services/maintenance/partitions.py` decides when the functions below are called.

-- Get tables for ourselves, all or none, and be the only one that changes partitions. Transactions use the tables in any
-- order, so each attempt is short: one of those that wait for each other is us, and mail waits this long for a lock at most.
-- Partitions that are not named stay free, for example for autovacuum.
CREATE FUNCTION lock_mail_tables(names TEXT[]) RETURNS VOID LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
DECLARE
    name TEXT;
BEGIN
    FOR attempt IN 1..20 LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(hashtext('postroad partitions'));
            FOREACH name IN ARRAY names LOOP
                EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', name);
            END LOOP;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF attempt = 20 THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.2 * random());
        END;
    END LOOP;
END $$;

DO $$
DECLARE
    of_mail CONSTANT TEXT[][] := ARRAY[
        ['messages', 'id'], ['bodies', 'message_id'], ['recipients', 'message_id'], ['attempts', 'message_id'],
        ['attempt_conversations', 'message_id'], ['async_bounces', 'message_id'], ['message_tags', 'message_id'],
        ['message_metadata', 'message_id'], ['resends', 'resend_of']];
    names CONSTANT TEXT[] := ARRAY(SELECT of_mail[number][1] FROM generate_subscripts(of_mail, 1) AS number);
    pair TEXT[];
    name TEXT;
    first TEXT;
    key TEXT;
    definitions TEXT[];
    definition TEXT;
    part RECORD;
BEGIN
    -- A partition must have every constraint of its table. Those that an earlier migration did not check are checked now,
    -- while mail goes on.
    FOR part IN SELECT conrelid::REGCLASS AS name, conname FROM pg_constraint
        WHERE NOT convalidated AND conrelid = ANY (names::REGCLASS[]) LOOP
        EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', part.name, part.conname);
    END LOOP;
    PERFORM lock_mail_tables(names);
    FOREACH pair SLICE 1 IN ARRAY of_mail LOOP
        name := pair[1];
        first := name || '_first';
        key := (SELECT pg_get_constraintdef(oid) FROM pg_constraint
            WHERE conrelid = name::REGCLASS AND contype = 'p');
        definitions := ARRAY(SELECT pg_get_indexdef(indexrelid) FROM pg_index
            WHERE indrelid = name::REGCLASS AND NOT indisprimary);
        -- The partitioned table takes over all names: later migrations refer to them.
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, first);
        FOR part IN SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE indrelid = first::REGCLASS LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', part.relname, part.relname || '_first');
        END LOOP;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)'
            ' PARTITION BY RANGE (%I)', name, first, pair[2]);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', name, name || '_pkey', key);
        FOREACH definition IN ARRAY definitions LOOP
            EXECUTE definition;
        END LOOP;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (MAXVALUE)', name, first);
        FOR part IN SELECT grantee::REGROLE AS role, privilege_type FROM pg_class CROSS JOIN aclexplode(relacl)
            WHERE pg_class.oid = first::REGCLASS AND grantee NOT IN (0, relowner) LOOP
            EXECUTE format('GRANT %s ON %I TO %s', part.privilege_type, name, part.role);
        END LOOP;
    END LOOP;
END $$;

-- The column by which a table is partitioned.
CREATE FUNCTION mail_partition_column(name TEXT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
    WHERE partrelid = format('%I', name)::REGCLASS;
$$;

-- The partitions of a table, from which id they begin and before which they end, and with which options they were created.
-- An open beginning or end is NULL.
CREATE FUNCTION mail_partitions(name TEXT)
RETURNS TABLE (partition TEXT, beginning TEXT, ending TEXT, options TEXT) LANGUAGE sql STABLE AS $$
    SELECT relname::TEXT, substring(bounds FROM 'FROM \(''(.*)''\) TO'), substring(bounds FROM 'TO \(''(.*)''\)'),
        CASE WHEN reloptions IS NULL THEN '' ELSE format('WITH (%s)', array_to_string(reloptions, ', ')) END
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    CROSS JOIN pg_get_expr(relpartbound, pg_class.oid) AS bounds
    WHERE inhparent = format('%I', name)::REGCLASS;
$$;

-- The day of an id, for the name of a partition.
CREATE FUNCTION mail_partition_day(bound TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(('x00' || substr(bound, 4, 14))::BIT(64)::BIGINT / 1000000.0) AT TIME ZONE 'UTC',
        'YYYYMMDD');
$$;

-- Refuse rows at or after a bound in the newest partitions, so that they can be checked for them while mail goes on;
-- NULL ends this.
CREATE FUNCTION bound_mail_partitions(names TEXT[], bound TEXT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    name TEXT;
    newest RECORD;
    place TEXT;
BEGIN
    PERFORM lock_mail_tables(names);
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS partition_bound', newest.partition);
        CONTINUE WHEN bound IS NULL;
        place := mail_partition_column(name);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT partition_bound CHECK (%I >= %L AND %I < %L) NOT VALID',
            newest.partition, place, coalesce(newest.beginning, ''), place, bound);
    END LOOP;
END $$;

-- End the newest partitions at a bound, and begin new ones there. If mail is stored in them, they were bounded before,
-- and are read now, while mail goes on.
CREATE FUNCTION extend_mail_partitions(names TEXT[], bound TEXT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    name TEXT;
    newest RECORD;
    is_bounded BOOLEAN;
    has_rows BOOLEAN;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postroad partitions'));
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        -- Another host was faster.
        IF newest.beginning COLLATE "C" >= bound THEN
            RETURN;
        END IF;
        is_bounded := EXISTS (SELECT FROM pg_constraint
            WHERE conrelid = format('%I', newest.partition)::REGCLASS AND conname = 'partition_bound');
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', newest.partition) INTO has_rows;
        IF is_bounded THEN
            EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT partition_bound', newest.partition);
        ELSIF has_rows THEN
            RAISE EXCEPTION 'partition % has rows and no bound', newest.partition USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    PERFORM lock_mail_tables(names || ARRAY(
        SELECT partition FROM unnest(names) AS one CROSS JOIN mail_partitions(one) WHERE ending IS NULL));
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', name, newest.partition);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)', name, newest.partition,
            coalesce(quote_literal(newest.beginning), 'MINVALUE'), bound);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS partition_bound', newest.partition);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (MAXVALUE) %s',
            name || '_from_' || mail_partition_day(bound), name, bound, newest.options);
    END LOOP;
END $$;

-- The messages before a bound that have not ended, or ended after a time.
CREATE FUNCTION late_messages(bound TEXT, ended_after BIGINT) RETURNS TABLE (late_account TEXT, late_id TEXT)
LANGUAGE sql STABLE AS $$
    SELECT account_id, id FROM messages WHERE id < bound AND ended_at > ended_after AND has_body = 1
    UNION SELECT account_id, id FROM messages WHERE id < bound AND ended_at > ended_after AND has_body = 0
    UNION SELECT account_id, message_id FROM queue WHERE message_id < bound;
$$;

-- Drop the partitions before a bound. Messages in them that have not ended, or ended after a time, are kept in a
-- partition for late mail, which is made anew each time.
CREATE FUNCTION expire_mail_partitions(names TEXT[], bound TEXT, ended_after BIGINT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    name TEXT;
    late TEXT;
    place TEXT;
    part RECORD;
    accounts TEXT[];
    ids TEXT[];
BEGIN
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) %s', name || '_late_' || mail_partition_day(bound), name,
            (SELECT options FROM mail_partitions(name) WHERE ending IS NULL));
    END LOOP;
    PERFORM lock_mail_tables(names || ARRAY['messages'] || ARRAY(
        SELECT partition FROM unnest(names) AS one CROSS JOIN mail_partitions(one) WHERE ending COLLATE "C" <= bound));
    -- Only now nothing changes: a host whose clock is wrong may have accepted mail that seems to be as old.
    SELECT array_agg(late_account), array_agg(late_id) INTO accounts, ids FROM late_messages(bound, ended_after);
    FOREACH name IN ARRAY names LOOP
        late := name || '_late_' || mail_partition_day(bound);
        place := mail_partition_column(name);
        EXECUTE format('INSERT INTO %I SELECT one.* FROM %I AS one JOIN unnest($1, $2) AS late (account_id, id)'
            ' ON one.account_id = late.account_id AND one.%I = late.id WHERE one.%I < $3',
            late, name, place, place) USING accounts, ids, bound;
        FOR part IN SELECT partition FROM mail_partitions(name) WHERE ending COLLATE "C" <= bound LOOP
            EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', name, part.partition);
            EXECUTE format('DROP TABLE %I', part.partition);
        END LOOP;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', name, late, bound);
    END LOOP;
END $$;

-- They run as the owner of the tables, for every role that may delete mail, and find nothing but these tables by a name.
DO $$
DECLARE
    part RECORD;
BEGIN
    FOR part IN SELECT oid::REGPROCEDURE AS signature FROM pg_proc WHERE pronamespace = current_schema()::REGNAMESPACE
        AND proname IN ('lock_mail_tables', 'mail_partition_column', 'mail_partitions', 'mail_partition_day',
            'bound_mail_partitions', 'extend_mail_partitions', 'late_messages', 'expire_mail_partitions') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', part.signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', part.signature);
        EXECUTE (SELECT coalesce(string_agg(format('GRANT EXECUTE ON FUNCTION %s TO %s', part.signature, grantee::REGROLE),
            ';'), '') FROM pg_class CROSS JOIN aclexplode(relacl)
            WHERE pg_class.oid = 'messages'::REGCLASS AND privilege_type = 'DELETE' AND grantee NOT IN (0, relowner));
    END LOOP;
END $$;
