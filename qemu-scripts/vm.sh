#!/bin/sh
# Boots a kernel and an initramfs beside the device process. See usage() below.
set -eu

usage() {
    cat <<'EOF'
usage: KERNEL=FILE INITRD=FILE vm.sh [further QEMU arguments]

Boots a guest that has the device of device.sh on its PCI bus. The console is
this terminal (Ctrl-C ends QEMU); results go to a file.
`cargo lab vm --print` prints the same lines with a kernel and an initramfs
that execlab made.

environment:
  KERNEL    kernel image (bzImage)         required
  INITRD    initramfs                      required
  SOCKET    where device.sh listens        (/tmp/execlab.sock)
  QEMU      the program                    (qemu-system-x86_64)
  CARRIER   QEMU device that carries ours  (chosen by what QEMU offers)
              test   vhost-user-test-device-pci, QEMU 10.2 or newer
              block  vhost-user-blk-pci-non-transitional, QEMU 7.2 or newer
              none   no device
  ACCEL     kvm or tcg                     (tcg)
  RESULTS   file for the results           (results.jsonl)
  APPEND    further kernel arguments       (none)
EOF
}

case ${1-} in
-h | --help)
    usage
    exit 0
    ;;
esac

if [ -z "${KERNEL-}" ] || [ -z "${INITRD-}" ]; then
    usage >&2
    exit 2
fi

qemu=${QEMU:-qemu-system-x86_64}
socket=${SOCKET:-/tmp/execlab.sock}
carrier=${CARRIER-}

if [ -z "$carrier" ]; then
    # 8.2 to 10.1 have a vhost-user-device-pci that cannot be created; only the newer name counts.
    if "$qemu" -device help 2>/dev/null | grep -q '"vhost-user-test-device-pci"'; then
        carrier='test'
    else
        carrier=block
    fi
fi

case $carrier in
test) device=vhost-user-test-device-pci,virtio-id=39,num_vqs=3,vq_size=256,config_size=64 ;;
block) device=vhost-user-blk-pci-non-transitional,num-queues=3,queue-size=256 ;;
none) device= ;;
*)
    echo "vm.sh: CARRIER=$carrier is none of test, block, none" >&2
    exit 2
    ;;
esac

if [ -n "$device" ]; then
    if [ ! -S "$socket" ]; then
        echo "vm.sh: nobody listens on $socket; start device.sh first (or set CARRIER=none)" >&2
        exit 1
    fi
    # Before the caller's arguments, which stay the last words on the line.
    set -- -chardev "socket,id=execlab,path=$socket" -device "$device,chardev=execlab" "$@"
fi

# share=on: the device process maps the guest's memory. intel-iommu: vfio-pci in the guest needs it.
# panic=-1 and -no-reboot: a guest that panics ends QEMU.
exec "$qemu" -nodefaults -no-user-config -display none -no-reboot \
    -machine q35,memory-backend=memory,kernel-irqchip=split \
    -accel "${ACCEL:-tcg}" -cpu max -smp 1 -m 512 \
    -object memory-backend-memfd,id=memory,size=512M,share=on \
    -device intel-iommu,intremap=on \
    -kernel "$KERNEL" -initrd "$INITRD" \
    -append "console=ttyS0 rdinit=/init panic=-1 loglevel=4 no_timer_check intel_iommu=on ${APPEND-}" \
    -chardev stdio,id=console -serial chardev:console \
    -chardev "file,id=results,path=${RESULTS:-results.jsonl}" \
    -device virtio-serial-pci-non-transitional \
    -device virtserialport,chardev=results,name=execlab.results \
    "$@"
