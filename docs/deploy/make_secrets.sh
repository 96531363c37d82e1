#!/bin/sh
# Writes an API key and the password of PostgreSQL into FOLDER, unless they are there.
#   make_secrets.sh FOLDER
set -eu
umask 077
folder=$1
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
mkdir -p "$folder"
# Nobody else on this machine gets past the folder. Docker mounts the files one by one, so that containers need not.
chmod 700 "$folder"
if [ ! -e "$folder/api_keys" ]; then
  random > "$folder/api_keys"
fi
if [ ! -e "$folder/postgres_password" ]; then
  password=$(random)
  printf %s "$password" > "$folder/postgres_password"
  printf %s "postgresql://trainmedic:$password@postgres/trainmedic" > "$folder/database_url"
fi
if [ "$(id -u)" = 0 ]; then
  # To the user of the service's container; that of PostgreSQL reads its password as root.
  chown 10001 "$folder/api_keys" "$folder/database_url"
  chmod 400 "$folder/api_keys" "$folder/database_url" "$folder/postgres_password"
else
  # Containers read them as other users, and only root could give them away.
  chmod 444 "$folder/api_keys" "$folder/database_url" "$folder/postgres_password"
fi
echo "the key for clients is in $folder/api_keys"
