#!/bin/sh
# Makes the secrets of docker-compose.yml in the folder secrets, once. The folder is closed to other users of this machine; its files are
# not, because the users of the containers read them.
set -eu
cd "$(dirname "$0")/.."
mkdir -m 700 secrets
umask 022
openssl rand -base64 32 >secrets/master_key
openssl rand -hex 24 >secrets/superuser_password
openssl rand -hex 24 >secrets/database_password
echo "postgres://pawl:$(cat secrets/database_password)@postgres:5432/pawl" >secrets/database_url
