#!/bin/sh
# Runs once, when the database server of docker-compose.yml is made: pawl's own role, which is no superuser, and its database.
set -eu
password=$(cat /run/secrets/database_password)
psql --set ON_ERROR_STOP=1 --set password="$password" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
create role pawl login nosuperuser nocreatedb nocreaterole password :'password';
create database pawl owner pawl;
revoke connect on database pawl from public;
revoke connect on database postgres from public;
SQL
