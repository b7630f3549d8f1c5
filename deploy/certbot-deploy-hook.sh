#!/bin/sh
# Gives Postroad the certificate that certbot has renewed: /etc/letsencrypt is for root alone.
#
#     install -m 755 certbot-deploy-hook.sh /etc/letsencrypt/renewal-hooks/deploy/postroad
#     certbot renew --force-renewal     # once, for the first copy
#
# Settings: tls_certificate = "/etc/postroad/tls/fullchain.pem", tls_key = "/etc/postroad/tls/privkey.pem".
# Postroad notices the new files and reloads them by itself.
set -eu

: "${RENEWED_LINEAGE:?is set by certbot: the folder of the renewed certificate}"
user=${POSTROAD_USER:-postroad}
folder=${POSTROAD_TLS_FOLDER:-/etc/postroad/tls}
group=$(id -gn "$user")

install -d -o "$user" -g "$group" -m 700 "$folder"
# Written beside and then renamed: a reader sees the old file or the new one, never a part.
# Between the two renames the pair does not match: Postroad keeps the old one, and reloads after the second.
for name in privkey.pem fullchain.pem; do
    install -o "$user" -g "$group" -m 600 "$RENEWED_LINEAGE/$name" "$folder/.$name.new"
done
for name in privkey.pem fullchain.pem; do
    mv "$folder/.$name.new" "$folder/$name"
done
