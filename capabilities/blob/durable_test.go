package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

func saved(t *testing.T, o blob.Options, data []byte) (state []byte, ok bool) {
	t.Helper()
	b := blob.NewBuilder(o)
	defer func() { _ = b.Close() }()
	if _, err := b.Write(data); err != nil {
		t.Fatal(err)
	}
	made, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	return made.Save()
}

// TestSave saves blobs and restores them: what is too large, or has a binding that does not restore it, is not saved.
func TestSave(t *testing.T) {
	t.Parallel()
	head := len("\x06text/x")
	for _, c := range []struct {
		size  int
		o     blob.Options
		lasts bool
	}{
		{size: 0, o: blob.Options{Lasts: true}, lasts: true},
		{size: abi.MaxSaved - head, o: blob.Options{Lasts: true}, lasts: true},
		{size: abi.MaxSaved - head + 1, o: blob.Options{Lasts: true}},
		{size: 100, o: blob.Options{Lasts: true, Memory: 1, DigestLater: true}, lasts: true}, // in a file
		{size: 100},
	} {
		c.o.MediaType = "text/x"
		data := bytes.Repeat([]byte("\x00a"), c.size)[:c.size]
		state, ok := saved(t, c.o, data)
		if ok != c.lasts || len(state) > abi.MaxSaved {
			t.Errorf("%d bytes: saved %t, %d bytes", c.size, ok, len(state))
		}
		if !ok {
			continue
		}
		quota := blob.NewQuota("test", int64(c.size))
		b, err := blob.Restore("blob", state, blob.Options{Quota: quota})
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Bytes(t.Context(), 0, abi.MaxBytes)
		again, lasts := b.Save()
		if err != nil || !bytes.Equal(got, data) || b.MediaType(t.Context()) != "text/x" || b.Digest(t.Context()) != blob.New("", data).Digest(t.Context()) || !lasts || !bytes.Equal(again, state) {
			t.Errorf("%d bytes: got %d, %v", c.size, len(got), err)
		}
		if quota.Free() != 0 {
			t.Errorf("%d bytes do not count", quota.Free())
		}
		if err := b.Close(); err != nil || quota.Free() != int64(c.size) {
			t.Error(err, quota.Free())
		}
		if _, err := blob.Restore("blob", state, blob.Options{Quota: blob.NewQuota("test", int64(c.size)-1)}); !errors.Is(err, abi.ErrExhausted) {
			t.Errorf("above the quota: %v", err)
		}
	}
	if _, ok := blob.New("text/x", nil).Save(); ok {
		t.Error("a blob of nobody is saved")
	}
}

// FuzzRestore restores blobs of any bytes. What comes of it is as large as the state at most, and saves as it was.
func FuzzRestore(f *testing.F) {
	for _, state := range []string{"", "\x00", "\x06text/xabc", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x05ab", "\x01\x00", "\x80\x00"} {
		f.Add([]byte(state))
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		b, err := blob.Restore("blob", state, blob.Options{})
		if err != nil {
			return
		}
		defer func() { _ = b.Close() }()
		if b.Size(t.Context()) > uint64(len(state)) || !blob.ValidMediaType(b.MediaType(t.Context())) {
			t.Errorf("%d bytes of %q", b.Size(t.Context()), b.MediaType(t.Context()))
		}
	})
}
