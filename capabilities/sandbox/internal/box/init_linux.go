package box

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// initCode has a line for each kind of processor, with the machine code of the first process of a box: init/init.c says what it does.
//
//go:embed init/code.txt
var initCode string

// writeProgram makes a file with the code of the first process, whatever the mask of this process. Nothing may be there, not even a link.
func writeProgram(path string, program []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o100)
	if err != nil {
		return err
	}
	_, err = file.Write(program)
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// initProgram is an ELF file with the code of the first process.
func initProgram() ([]byte, error) {
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	var code []byte
	for line := range strings.Lines(initCode) {
		if name, text, _ := strings.Cut(strings.TrimSpace(line), " "); name == runtime.GOARCH {
			code, _ = hex.DecodeString(text) // none of it if it is broken
		}
	}
	if machine == 0 || len(code) == 0 {
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
