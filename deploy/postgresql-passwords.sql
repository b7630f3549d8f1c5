-- Sets the passwords of the two roles of postgresql-roles.sql from the environment of psql (PostgreSQL 15 or newer).
-- compose.postgres.yml uses it; by hand, \password asks for one without showing it.
\set ON_ERROR_STOP on
\getenv owner POSTROAD_OWNER_PASSWORD
\getenv service POSTROAD_SERVICE_PASSWORD
ALTER ROLE postroad_owner PASSWORD :'owner';
ALTER ROLE postroad_service PASSWORD :'service';
