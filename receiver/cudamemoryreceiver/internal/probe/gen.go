// SPDX-License-Identifier: Apache-2.0

package probe

// `make bpf` runs this; what it writes is committed, so that nobody else needs clang.
//go:generate $BPF2GO -target amd64,arm64 counters bpf/probe.c -- -mcpu=v3 -Wall -Werror -I/usr/include/x86_64-linux-gnu
