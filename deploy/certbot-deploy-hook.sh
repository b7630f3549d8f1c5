#!/bin/sh
# Gives Postroad the certificate that certbot has renewed: /etc/letsencrypt is for root alone.
#
#     install -m 755 certbot-deploy-hook.sh /etc/letsencrypt/renewal-hooks/deploy/postroad
#     certbot renew --force-renewal     # once, for the first copy
#
# Settings, in [tls]: certificate = "/etc/postroad/tls/fullchain.pem", key = "/etc/postroad/tls/privkey.pem".
# Postroad notices the new files and reloads them by itself.
set -eu

: "${RENEWED_LINEAGE:?is set by certbot: the folder of the renewed certificate}"
user=${POSTROAD_USER:-postroad}
folder=${POSTROAD_TLS_FOLDER:-/etc/postroad/tls}

# As the user of the service, who owns the folder: root would follow a link in it to any file of the host.
as_user() {
    runuser -u "$user" -- "$@"
}

as_user mkdir -p -m 700 "$folder"
# Written beside and then renamed: a reader sees the old file or the new one, never a part.
# Between the two renames the pair does not match: Postroad keeps the old one, and reloads after the second.
for name in privkey.pem fullchain.pem; do
    as_user sh -c 'umask 077 && rm -f "$1" && cat > "$1"' sh "$folder/.$name.new" < "$RENEWED_LINEAGE/$name"
done
for name in privkey.pem fullchain.pem; do
    as_user mv "$folder/.$name.new" "$folder/$name"
done
