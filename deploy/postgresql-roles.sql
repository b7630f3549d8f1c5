-- Two roles for one PostgreSQL database: postroad_owner owns the tables and migrates them, and postroad_service, which
-- the service runs as, reads and writes rows, creates and drops partitions of mail through functions of the owner, and
-- can do nothing else. Run this as a superuser, connected to the database of Postroad; then give both a password:
--
--   createdb postroad
--   psql --dbname postroad --file postgresql-roles.sql
--   psql --dbname postroad --command '\password postroad_owner'
--   psql --dbname postroad --command '\password postroad_service'
--
-- It can be repeated, and it also takes over a database that already has tables. On a managed server without a superuser,
-- create both roles by hand, run GRANT postroad_owner TO CURRENT_USER, and then this file.
--
--   postroad migrate   with postgresql://postroad_owner:…@host/postroad
--   postroad serve     with postgresql://postroad_service:…@host/postroad
\set ON_ERROR_STOP on

SELECT format('CREATE ROLE %I LOGIN', name) FROM (VALUES ('postroad_owner'), ('postroad_service')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

BEGIN;

-- Nobody else enters this database or finds anything in it. Without TEMPORARY there are no temporary tables either.
ALTER DATABASE :"DBNAME" OWNER TO postroad_owner;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO postroad_service;
ALTER SCHEMA public OWNER TO postroad_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO postroad_service;

-- What was there before.
SELECT format('ALTER TABLE %s OWNER TO postroad_owner', oid::regclass) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND relowner <> 'postroad_owner'::regrole
\gexec

-- Rows only: COPY into a table needs INSERT, and LISTEN, NOTIFY and advisory locks need no right. The
-- service never empties a table with TRUNCATE.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO postroad_service;

-- The functions that begin and drop partitions of mail run as their owner.
SELECT format('ALTER FUNCTION %1$s OWNER TO postroad_owner; GRANT EXECUTE ON FUNCTION %1$s TO postroad_service',
    oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname IN ('lock_mail_tables', 'mail_partition_column',
    'mail_partitions', 'mail_partition_day', 'bound_mail_partitions', 'extend_mail_partitions', 'late_messages',
    'expire_mail_partitions')
\gexec

-- The same for every table that a later migration creates.
ALTER DEFAULT PRIVILEGES FOR ROLE postroad_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO postroad_service;

-- Whoever restores a backup sees whether the service still runs.
GRANT postroad_service TO postroad_owner;

COMMIT;
