package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stilehost/stile/conformance/protocol"
)

func TestRead(t *testing.T) {
	r := protocol.NewReader(strings.NewReader(`{"id":1,"result":{"outcome":"ok"}}` + "\n" + `{"id":2,"more":1}` + "\n{} {}\n[]\nhello\n\n" + `{"id":3}`))
	for _, want := range []int{1, -1, -1, -1, -1, -1, 3} {
		var got protocol.Response
		err := r.Read(&got)
		if line := new(protocol.LineError); want < 0 && !errors.As(err, &line) {
			t.Errorf("got %+v, %v, want an error", got, err)
		} else if want > 0 && (err != nil || got.ID != want) {
			t.Errorf("got %+v, %v, want %d", got, err, want)
		}
	}
	if err := r.Read(new(protocol.Response)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	long := protocol.NewReader(strings.NewReader(strings.Repeat("x", protocol.MaxLine+1)))
	if err := long.Read(new(protocol.Response)); !errors.Is(err, protocol.ErrLine) {
		t.Errorf("a long line: %v", err)
	}
}

// FuzzRead reads what a host might write. Each message that is read is one that can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":1,"hello":{"protocol":1,"name":"x","version":"1","kinds":["http"]}}`))
	f.Add([]byte(`{"id":2,"result":{"outcome":"denied","denial":{"binding":"a"},"operations":[{"binding":"a","func":"b.c","error":"denied"}]}}`))
	f.Add([]byte("\xff\n{\"id\":1e99}\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := protocol.NewReader(bytes.NewReader(data))
		for range bytes.Count(data, []byte("\n")) + 1 {
			var got, again protocol.Response
			switch err := r.Read(&got); {
			case errors.As(err, new(*protocol.LineError)):
				continue
			case err != nil:
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				return
			}
			var line bytes.Buffer
			if err := protocol.Write(&line, got); err != nil {
				t.Fatal(err)
			}
			if bytes.Count(line.Bytes(), []byte("\n")) != 1 {
				t.Fatalf("%q is more than a line", line.Bytes())
			}
			if err := protocol.NewReader(&line).Read(&again); err != nil {
				t.Fatal(err)
			}
		}
	})
}
