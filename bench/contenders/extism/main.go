// Command extism answers the frames that bench/contenders/driver.go describes, with a new instance of a plug-in each time. It is a
// separate module, so that Stile does not depend on Extism.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	extism "github.com/extism/go-sdk"
)

func main() {
	if err := serve(context.Background(), os.Args[1], bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, plugin string, in io.Reader, out io.Writer) (err error) {
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmFile{Path: plugin}}, Timeout: uint64(5 * time.Second / time.Millisecond)}
	compiled, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, compiled.Close(ctx)) }()
	for {
		var head [4]uint32 // id, kept, lengths of source and input
		if err := binary.Read(in, binary.LittleEndian, &head); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		body := make([]byte, int(head[2])+int(head[3]))
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		instance, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
		if err != nil {
			return err
		}
		_, output, err := instance.Call("hello", body[head[2]:])
		if err != nil {
			return err
		}
		if err := write(out, head[0], output); err != nil {
			return err
		}
		if err := instance.Close(ctx); err != nil {
			return err
		}
		if err := write(out, head[0], nil); err != nil {
			return err
		}
	}
}

func write(out io.Writer, id uint32, body []byte) error {
	frame, err := binary.Append(nil, binary.LittleEndian, [2]uint32{id, uint32(len(body))})
	if err == nil {
		_, err = out.Write(append(frame, body...))
	}
	return err
}
