package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return blob.Digest(sum[:])
}

func TestReplace(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 5<<20/16)
	onBoth(t, func(t *testing.T, d *Directory) {
		ctx := t.Context()
		replace := func(path, text string, digest *string) error {
			_, err := d.Replace(ctx, path, text, digest)
			return err
		}
		for _, step := range []struct {
			path, text string
			digest     *string
			err        string // what the conflict says, or nothing
		}{
			{"dir/a", "one", new(digestOf("")), "is gone"},
			{"dir/a", "one", nil, ""},
			{"dir/a", "two", nil, "exists"},
			{"dir/a", "two", new(digestOf("two")), "another content"},
			{"dir/a", "two", new("one"), "another content"},
			{"dir/a", "two", new(digestOf("one")), ""},
			{"dir/a", large, new(digestOf("two")), ""},
			{"dir/a", "", new(digestOf(large)), ""},
			{"dir/a", "end", new(digestOf("")), ""},
		} {
			before, _ := d.Read(ctx, step.path)
			got, err := d.Replace(ctx, step.path, step.text, step.digest)
			if step.err != "" {
				expect(t, step.text, err, abi.ErrConflict, step.err)
				if after, _ := d.Read(ctx, step.path); after != before {
					t.Errorf("%q was written after all", after)
				}
			} else if err != nil || read(t, d, step.path) != step.text || got != digestOf(step.text) {
				t.Errorf("%.20q: %v", step.text, err)
			}
		}
		expect(t, "nothing there", replace("new/a", "x", new(digestOf(""))), abi.ErrConflict, "is gone")
		if _, err := d.Stat(ctx, "new"); !errors.Is(err, abi.ErrNotFound) {
			t.Errorf("a refused call made a directory: %v", err)
		}
		if err := d.WriteBytes(ctx, "binary", []byte{0xff, 0}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Replace(ctx, "binary", "text", new(digestOf("\xff\x00"))); err != nil {
			t.Errorf("binary: %v", err)
		}
		expect(t, "a directory", replace("dir", "x", nil), abi.ErrInvalid, "")
		expect(t, "not UTF-8", replace("x", "\xff", nil), abi.ErrInvalid, "not UTF-8")
		expect(t, "too large", replace("x", strings.Repeat("x", abi.MaxText+1), nil), abi.ErrTooLarge, "")
	})
}

// TestReadWithDigest reads texts up to a size, and other files without a text.
func TestReadWithDigest(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20<<10)
	onBoth(t, func(t *testing.T, d *Directory) {
		ctx := t.Context()
		for _, content := range []string{"", "text\n", "\xff\x00", large} {
			if err := d.WriteBlob(ctx, "f", blob.New("", []byte(content))); err != nil {
				t.Fatal(err)
			}
			for _, most := range []int{0, len(content) - 1, len(content), 1 << 40} {
				got, err := d.ReadWithDigest(ctx, "f", uint64(max(0, most)))
				isText := len(content) <= max(0, most) && utf8.ValidString(content)
				if err != nil || got.Size != uint64(len(content)) || got.Digest != digestOf(content) || (got.Text != nil) != isText || isText && *got.Text != content {
					t.Errorf("%.10q up to %d: got %d bytes, %s, text %v, %v", content, most, got.Size, got.Digest, got.Text != nil, err)
				}
			}
		}
		write(t, d, "dir/f", "")
		_, err := d.ReadWithDigest(ctx, "dir", 1)
		expect(t, "a directory", err, abi.ErrInvalid, "is a directory")
		_, err = d.ReadWithDigest(ctx, "gone", 1)
		expect(t, "nothing", err, abi.ErrNotFound, "")
		_, err = d.ReadWithDigest(ctx, "../f", 1)
		expect(t, "outside", err, abi.ErrDenied, "")
	})
}

// Of many who replace the same content, one succeeds each time.
func TestReplaceAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, d *Directory) {
		const rounds, at = 20, 8
		write(t, d, "f", "0")
		for round := range rounds {
			now := digestOf(read(t, d, "f"))
			var wait sync.WaitGroup
			errs := make([]error, at)
			for i := range at {
				wait.Go(func() {
					_, errs[i] = d.Replace(context.WithoutCancel(t.Context()), "f", fmt.Sprintf("%d by %d", round, i), &now)
				})
			}
			wait.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, abi.ErrConflict) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Fatalf("%d of %d replaced the same content", won, at)
			}
		}
	})
}

func TestDiffRevision(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	write(t, d, "a", "one\ntwo\n")
	write(t, d, "a", "one\nthree\n")
	all, err := d.History(t.Context(), "a")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	got, err := d.DiffRevision(t.Context(), "a", all[0].ID)
	if want := fmt.Sprintf("--- a/a@%d\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n", all[0].ID); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, err = d.DiffRevision(t.Context(), "a", 1<<40)
	expect(t, "no revision", err, abi.ErrNotFound, "no revision")
	_, err = d.DiffRevision(t.Context(), "b", all[0].ID)
	expect(t, "no file", err, abi.ErrNotFound, "")
	write(t, d, "a", strings.Repeat("x", maxDiff+1))
	_, err = d.DiffRevision(t.Context(), "a", all[0].ID)
	expect(t, "large", err, abi.ErrTooLarge, "")
	_, err = openedDisk(t, t.TempDir()).DiffRevision(t.Context(), "a", 1)
	expect(t, "on disk", err, abi.ErrUnavailable, "no history")
}
