package workspace

import (
	"context"
	"errors"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/captest"
)

func TestBytesAreCharged(t *testing.T) { onBoth(t, testBytesAreCharged) }

func testBytesAreCharged(t *testing.T, d *Directory) {
	const text = "one\ntwo\n"
	write(t, d, "file", text)
	bytes := func(b *blob.Blob, err error) error {
		if err == nil {
			err = b.Close()
		}
		return err
	}
	for name, c := range map[string]struct {
		bytes int64
		do    func(context.Context) error
	}{
		"read":       {8, func(ctx context.Context) error { _, err := d.Read(ctx, "file"); return err }},
		"read lines": {4, func(ctx context.Context) error { _, err := d.ReadLines(ctx, "file", 2, nil); return err }},
		"a line":     {4, func(ctx context.Context) error { _, err := d.ReadLines(ctx, "file", 1, new(uint32(1))); return err }},
		"read bytes": {3, func(ctx context.Context) error { _, err := d.ReadBytes(ctx, "file", 5, 100); return err }},
		"read whole": {8, func(ctx context.Context) error { _, err := d.ReadWithDigest(ctx, "file", 100); return err }},
		"read blob":  {8, func(ctx context.Context) error { return bytes(d.ReadBlob(ctx, "file")) }},
		"grep":       {3, func(ctx context.Context) error { _, err := d.Grep(ctx, "t", Search{}, 10, nil); return err }},
		"diff":       {16, func(ctx context.Context) error { _, err := d.Diff(ctx, "file", "file"); return err }},
		"write":      {8, func(ctx context.Context) error { return d.Write(ctx, "file", text) }},
		"new":        {8, func(ctx context.Context) error { return d.WriteBytes(ctx, "new/file.bin", []byte("12345678")) }},
		"append":     {5, func(ctx context.Context) error { return d.AppendBytes(ctx, "other", []byte("12345")) }},
		"edit":       {16, func(ctx context.Context) error { return d.Edit(ctx, "file", []Replacement{{"one", "one"}}) }},
		"replace": {16, func(ctx context.Context) error {
			_, err := d.Replace(ctx, "file", text, new(digestOf(text)))
			return err
		}},
		"look": {0, func(ctx context.Context) error { _, err := d.Stat(ctx, "file"); return err }},
	} {
		if err := c.do(abi.WithMeter(t.Context(), &captest.Meter{Left: c.bytes})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.do(abi.WithMeter(t.Context(), &captest.Meter{Left: c.bytes - 1})); c.bytes > 0 && !errors.Is(err, abi.ErrExhausted) {
			t.Errorf("%s: with a byte less: %v", name, err)
		}
		if read(t, d, "file") != text {
			t.Errorf("%s changed the file", name)
		}
	}
}

func TestRevisionsAreCharged(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	write(t, d, "file", "12345")
	write(t, d, "file", "")
	all, err := d.History(t.Context(), "file")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if _, err := d.ReadRevision(abi.WithMeter(t.Context(), &captest.Meter{Left: 4}), "file", all[0].ID); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("got %v", err)
	}
}
