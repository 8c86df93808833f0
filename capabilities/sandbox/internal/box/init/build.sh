#!/bin/sh
# Makes code.txt, the machine code of init.c. Needs gcc and gcc-aarch64-linux-gnu.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'SECTIONS { . = 0x400078; .text : { *(.entry) *(.text*) *(.rodata*) } /DISCARD/ : { *(*) } }' >"$dir/script"
for cross in amd64= arm64=aarch64-linux-gnu-; do
  prefix=${cross#*=}
  "${prefix}gcc" -Os -ffreestanding -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fno-builtin -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns \
    $([ "${cross%%=*}" = amd64 ] && echo -fcf-protection=none -mno-sse) -Wall -Wextra -Werror -T "$dir/script" -Wl,--build-id=none -o "$dir/init" init.c
  "${prefix}objcopy" -O binary "$dir/init" "$dir/code"
  printf '%s %s\n' "${cross%%=*}" "$(od -An -v -tx1 "$dir/code" | tr -d ' \n')"
done >code.txt
