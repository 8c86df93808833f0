package box

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
)

// initCode is the first process of a box, in machine code: it has the kernel reap processes whose parents are gone (SIGCHLD is ignored),
// writes one byte, and ends when its standard input ends. It needs nothing of the root file system. In C:
//
//	struct { long handler, flags, restorer, mask; } ignore = { 1 };
//	rt_sigaction(SIGCHLD, &ignore, 0, 8);
//	write(1, &ignore, 1);
//	for (long n = 1; n > 0 || n == -EINTR;) n = read(0, buffer, 1);
//	exit_group(0);
var initCode = map[string]string{
	"amd64": "b80d000000bf11000000488d354600000031d241ba080000000f05b801000000bf01000000488d352b000000ba010000000f05" +
		"31c031ff488d7424c0ba010000000f054885c07feb4883f8fc74e5b8e700000031ff0f05" + "0100000000000000000000000000000000000000000000000000000000000000",
	"arm64": "e00340b2e0031cf8ff831cf8ff031df8ff831df8ff0301d1200280d2e1030091e2031faae3037db2c81080d2010000d4" +
		"e00340b2e1030091e20340b2e8037ab2010000d4e0031faae10301d1e20340b2e81740b2010000d41f0000f14cffff541f1000b100ffff54e0031faac80b80d2010000d4",
}

// initProgram is an ELF file with the code of the first process.
func initProgram() ([]byte, error) {
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	code, err := hex.DecodeString(initCode[runtime.GOARCH])
	if machine == 0 || err != nil {
		return nil, fmt.Errorf("%w: not on %s", ErrUnavailable, runtime.GOARCH)
	}
	const address, header, program = 0x400000, 64, 56
	size := uint64(header + program + len(code))
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, v := range []any{
		uint16(2), machine, uint32(1), uint64(address + header + program), uint64(header), uint64(0), uint32(0), uint16(header), uint16(program), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(address), uint64(address), size, size, uint64(0x1000), // one segment, read and execute
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // to memory
	}
	b.Write(code)
	return b.Bytes(), nil
}
