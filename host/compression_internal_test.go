package host

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/deflate"
	"github.com/stilehost/stile/internal/fair"
	"github.com/stilehost/stile/internal/wordtext"
	"github.com/stilehost/stile/wit"
)

// codecCall is a call that can open codecs.
func codecCall(t *testing.T) (*call, func(name string, format uint32) (*openedCodec, abi.Rep, error)) {
	t.Helper()
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{known: known, codecs: fair.NewBudget(allCodecs)}
	c := &call{host: h, ctx: t.Context(), frame: &frame{}, handles: handles{open: map[abi.Rep]*handle{}, limit: 100_000}}
	t.Cleanup(func() {
		if err := c.handles.sweep(); err != nil || c.codecs != 0 || h.codecs.Free() != allCodecs {
			t.Errorf("%d bytes are not given back, %v", c.codecs, err)
		}
	})
	return c, func(name string, format uint32) (*openedCodec, abi.Rep, error) {
		f := funcNamed(known.Interface(abi.CompressionInterface), name)
		answer, err := c.openCodec(f, []abi.Value{abi.Rep(1), abi.Variant{Case: format}, uint8(6)}, codecs[name])
		if err != nil {
			t.Fatal(err)
		}
		v := answer.(abi.Variant)
		if v.Case == 1 {
			var refused *abi.Error
			if err := abi.Decode(f.Result.Err, v.Value, &refused, nil); err != nil {
				t.Fatal(err)
			}
			return nil, 0, refused
		}
		rep := v.Value.(abi.Rep)
		return c.handles.open[rep].value.(*openedCodec), rep, nil
	}
}

// The codecs of a call have a bounded memory together. One that is closed gives its part back.
func TestOpenCodecsAreBounded(t *testing.T) {
	for _, name := range []string{"compress", "decompress"} {
		c, open := codecCall(t)
		var last abi.Rep
		n := 0
		for ; ; n++ {
			_, rep, err := open(name, 0)
			if errors.Is(err, abi.ErrExhausted) && strings.Contains(err.Error(), "32 MiB") {
				break
			}
			if err != nil || n > 10_000 {
				t.Fatal(n, err)
			}
			last = rep
		}
		if n < 20 || n > 110 {
			t.Errorf("%s: %d are open", name, n)
		}
		if err := c.handles.remove(last).close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(name, 0); err != nil {
			t.Errorf("%s: after one was closed: %v", name, err)
		}
	}
}

// Whatever text a guest passes, a step answers with an error.
func TestCodecsRefuse(t *testing.T) {
	_, open := codecCall(t)
	compress, _, err := open("compress", 0)
	if err != nil {
		t.Fatal(err)
	}
	decompress, _, err := open("decompress", 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"no text of words":     {"abc", abi.ErrInvalid},
		"nothing":              {"", abi.ErrInvalid},
		"a number without end": {strings.Repeat("\x7f", 16), abi.ErrInvalid},
		"not ASCII":            {strings.Repeat("é", 8), abi.ErrInvalid},
		"too much":             {wordtext.Pack(make([]byte, deflate.Piece+1)), abi.ErrInvalid},
		"far too much":         {strings.Repeat("\x00", 1<<20), abi.ErrTooLarge},
	} {
		for _, codec := range []*openedCodec{compress, decompress} {
			if _, err := codec.Step(t.Context(), test.text, 0); !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", name, err, test.want)
			}
		}
	}
	packed, err := compress.Step(t.Context(), wordtext.Pack([]byte("hello")), 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decompress.Step(t.Context(), packed.Bytes, 0)
	if text, ok := wordtext.Unpack(got.Bytes); err != nil || !ok || !bytes.Equal(text, []byte("hello")) || got.Rest == nil || *got.Rest != 0 {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := decompress.Step(t.Context(), packed.Bytes, 0); err != nil {
		t.Error(err)
	}
}
