#!/bin/sh
# Starts the device process in the foreground. See usage() below.
set -eu

usage() {
    cat <<'EOF'
usage: device.sh [execlab-device's own options]

Starts the emulated GPU; it listens on a Unix socket and serves one VM after
another until Ctrl-C. Start it first, then vm.sh in a second terminal.

environment:
  SOCKET   where to listen         (/tmp/execlab.sock)
  DEVICE   the program             (target/release/execlab-device of this checkout;
                                    build it: cargo build --release -p execlab-device)

examples:
  device.sh --list-profiles
  device.sh --profile kbl-2018 --wait hybrid --dilation 20 --seed 1
EOF
}

case ${1-} in
-h | --help)
    usage
    exit 0
    ;;
esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
device=${DEVICE:-$here/../target/release/execlab-device}

if [ ! -x "$device" ]; then
    echo "device.sh: $device is not there; run: cargo build --release -p execlab-device" >&2
    exit 1
fi

exec "$device" --socket "${SOCKET:-/tmp/execlab.sock}" "$@"
