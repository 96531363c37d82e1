#!/bin/sh
# Writes an API key and the password of PostgreSQL into FOLDER, unless they are there.
#   make_secrets.sh FOLDER
set -eu
folder=$1
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
mkdir -p "$folder"
chmod 711 "$folder"
if [ ! -e "$folder/api_keys" ]; then
  random > "$folder/api_keys"
fi
if [ ! -e "$folder/postgres_password" ]; then
  password=$(random)
  printf %s "$password" > "$folder/postgres_password"
  printf %s "postgresql://trainmedic:$password@postgres/trainmedic" > "$folder/database_url"
fi
# Containers read them as other users; the folder cannot be listed.
chmod 444 "$folder/api_keys" "$folder/postgres_password" "$folder/database_url"
echo "the key for clients is in $folder/api_keys"
