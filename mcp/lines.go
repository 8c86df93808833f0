package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the most bytes of a message.
const maxLine = 16 << 20

// Lines is a transport over in and out, such as stdin and stdout: each line is a message, of at most 16 MiB. A line that is none
// is answered with an error, and the next one is read. It closes in; out stays open.
func Lines(in io.ReadCloser, out io.Writer) sdk.Transport {
	w := &lineWriter{out: out}
	return &sdk.IOTransport{Reader: &lineReader{in: in, lines: bufio.NewReaderSize(in, 64<<10), refuse: w}, Writer: w, MaxLineLength: -1}
}

// lineWriter keeps the messages of several writers apart: each is one Write.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// Close implements io.Closer.
func (*lineWriter) Close() error { return nil }

// lineReader reads the lines that are messages: anything else would end the SDK's connection.
type lineReader struct {
	in     io.Closer
	lines  *bufio.Reader
	refuse io.Writer
	rest   []byte // of the message that is being read
}

// Close implements io.Closer.
func (r *lineReader) Close() error { return r.in.Close() }

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		if len(line) == 0 {
			continue
		}
		if bad := checkLine(line); bad != nil {
			if err := r.answer(bad); err != nil {
				return 0, err
			}
			continue
		}
		r.rest = append(line, '\n')
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line without its end and the space around it; of one that is too long, so much that it is seen.
func (r *lineReader) line() (line []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if room := maxLine + 1 - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// checkLine says what is wrong with a line; nil when it is a message.
func checkLine(line []byte) *jsonrpc.Error {
	switch {
	case len(line) > maxLine:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a line has more than %d MiB", maxLine>>20)}
	case !json.Valid(line):
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is not JSON"}
	case line[0] == '[':
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a line is a list; write one message a line"}
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a line is no JSON-RPC message"}
	}
	return nil
}

// answer answers a line that has no number to answer to.
func (r *lineReader) answer(bad *jsonrpc.Error) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": bad})
	if err != nil {
		return err
	}
	_, err = r.refuse.Write(append(text, '\n'))
	return err
}
