#!/usr/bin/env bash
# Runs a Matrix homeserver for tests and demonstrations, on loopback and without federation.
#
#   synapse.sh install FOLDER           install Synapse and a client library into FOLDER with pip (once)
#   synapse.sh serve FOLDER STATE PORT  serve until the input ends or a signal arrives
#
# Accounts are registered with the shared secret below.
set -euo pipefail

readonly synapse=1.163.2 nio=0.26.0
readonly secret=loopback-only

die() {
    printf 'synapse: %s\n' "$1" >&2
    exit 1
}

install() {
    local folder=$1
    [[ ! -e $folder/.installed-$synapse-$nio ]] || return 0
    rm -rf "$folder" && mkdir -p "$folder"
    python3 -m pip install --quiet --disable-pip-version-check --no-input --no-warn-conflicts --root-user-action ignore --target "$folder" \
        "matrix-synapse==$synapse" "matrix-nio[e2e]==$nio" || die "pip could not install it: see above."
    touch "$folder/.installed-$synapse-$nio"
}

# Writes the configuration: no rate limits, because tests talk fast; no federation; cheap password hashes.
configure() {
    local state=$1 port=$2 free='{per_second: 10000, burst_count: 10000}'
    mkdir -p "$state"
    [[ -e $state/signing.key ]] || python3 -c 'import sys; from signedjson.key import *; write_signing_keys(open(sys.argv[1], "w"), [generate_signing_key("a_1")])' "$state/signing.key"
    cat >"$state/log.yaml" <<END
version: 1
formatters: {line: {format: '%(asctime)s %(name)s %(levelname)s %(message)s'}}
handlers: {file: {class: logging.FileHandler, formatter: line, filename: $state/synapse.log}}
root: {level: WARNING, handlers: [file]}
disable_existing_loggers: false
END
    cat >"$state/homeserver.yaml" <<END
server_name: localhost
public_baseurl: "http://127.0.0.1:$port/"
pid_file: $state/synapse.pid
listeners: [{port: $port, bind_addresses: ['127.0.0.1'], type: http, tls: false, resources: [{names: [client], compress: false}]}]
database: {name: sqlite3, args: {database: "$state/homeserver.db"}}
log_config: "$state/log.yaml"
media_store_path: "$state/media"
signing_key_path: "$state/signing.key"
registration_shared_secret: $secret
macaroon_secret_key: $secret
form_secret: $secret
report_stats: false
trusted_key_servers: []
suppress_key_server_warning: true
federation_domain_whitelist: []
presence: {enabled: false}
bcrypt_rounds: 4
rc_message: $free
rc_registration: $free
rc_login: {address: $free, account: $free, failed_attempts: $free}
rc_joins: {local: $free, remote: $free}
rc_joins_per_room: $free
rc_invites: {per_room: $free, per_user: $free, per_issuer: $free}
rc_media_create: $free
rc_room_creation: $free
rc_key_requests: $free
END
}

serve() {
    local folder=$1 state=$2 port=$3
    export PYTHONPATH="$folder"
    configure "$state" "$port"
    python3 -m synapse.app.homeserver --config-path "$state/homeserver.yaml" >"$state/output.log" 2>&1 </dev/null &
    # Not local, because the trap outlives this function.
    pid=$!
    trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true' EXIT
    trap 'exit 0' TERM INT
    until python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=5)' "http://127.0.0.1:$port/health" 2>/dev/null; do
        kill -0 "$pid" 2>/dev/null || { cat "$state/output.log" >&2; die "it did not start"; }
        sleep 0.1
    done
    echo ready
    # The caller holds the input open. When the caller ends in any way, the homeserver ends too.
    cat >/dev/null
}

case ${1:-} in
    install) install "$2" ;;
    serve) serve "$2" "$3" "$4" ;;
    *) die "see the head of this file" ;;
esac
