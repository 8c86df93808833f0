package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
)

// naive finds occurrences one by one.
func naive(text, part string) (o occurrence) {
	for i := range len(text) - len(part) + 1 {
		if text[i:i+len(part)] == part {
			o.count++
			o.end = i + len(part)
		}
	}
	return o
}

func TestOccurrences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := func(letters string, least, most int) *rapid.Generator[string] {
			return rapid.StringOfN(rapid.SampledFrom([]rune(letters)), least, most, -1)
		}
		letters := rapid.SampledFrom([]string{"a", "ab", "abc", "abcdefghijklmnop"}).Draw(t, "letters")
		text := word(letters, 0, 200).Draw(t, "text")
		sought := rapid.SliceOfN(word(letters, 1, 5), 0, 60).Draw(t, "sought")
		found, err := occurrences(t.Context(), text, sought)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range sought {
			if want := naive(text, part); found[i] != want {
				t.Fatalf("%q: %+v, want %+v", part, found[i], want)
			}
		}
	})
}

// looks is a context that counts how often it is asked whether it has ended, and ends after a number of times.
type looks struct {
	context.Context
	count, most int
}

func (l *looks) Err() error {
	if l.count++; l.most > 0 && l.count > l.most {
		return context.Canceled
	}
	return l.Context.Err()
}

// TestHostileEdits checks that each search of a text takes one pass, whatever the pattern: at most two steps for each byte.
func TestHostileEdits(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	var comb, deep, wide, nested []string
	for i := range 1000 {
		comb = append(comb, strings.Repeat("a", 30)+fmt.Sprintf("b%04d", i))
		deep = append(deep, strings.Repeat("a", 1+i%500)+"b")
		nested = append(nested, strings.Repeat("a", 1+i%500))
		wide = append(wide, "a"+string(rune('b'+i%25))+string(rune('a'+i/25)))
	}
	for name, sought := range map[string][]string{"one prefix": comb, "all lengths": deep, "nested": nested, "many children": wide} {
		t.Run(name, func(t *testing.T) {
			short, long := text[:len(text)/16], text
			for _, part := range []string{short, long} {
				ctx := &looks{Context: t.Context()}
				found, err := occurrences(ctx, part, sought)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range sought[:3] {
					if want := strings.Contains(part, s); want != (found[i].count > 0) {
						t.Errorf("%.40q: %+v", s, found[i])
					}
				}
				if want := len(part)/chunkSize + len(sought); ctx.count != want {
					t.Errorf("looked at the clock %d times, want %d: each part of the text once", ctx.count, want)
				}
			}
			over := &looks{Context: t.Context(), most: len(sought) + 2}
			if _, err := occurrences(over, text, sought); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v when the time was over", err)
			}
		})
	}
	_, _, err := replace(t.Context(), text, []Replacement{{strings.Repeat("a", maxSought+1), ""}})
	expect(t, "too much", err, abi.ErrInvalid, "the old texts have 524289 bytes; at most 524288 in one edit")
}

// BenchmarkEdit measures the cost of a byte: the most hostile search must cost at most a small factor more than a plain one.
func BenchmarkEdit(b *testing.B) {
	text := strings.Repeat("a", abi.MaxText)
	for name, sought := range map[string][]string{"plain": {"needle"}, "hostile": nil} {
		for i := range 1000 {
			if name == "hostile" {
				sought = append(sought, strings.Repeat("a", 1+i%500)+fmt.Sprintf("b%d", i))
			}
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := occurrences(b.Context(), text, sought); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// editing is a volume whose files others change while an edit works out what to write.
type editing struct {
	volume
	meanwhile func()
}

func (v *editing) update(ctx context.Context, base string, f func(files) error) error {
	v.meanwhile()
	return v.volume.update(ctx, base, f)
}

func TestEditWhileOthersWrite(t *testing.T) { onBoth(t, testEditWhileOthersWrite) }

func testEditWhileOthersWrite(t *testing.T, d *Directory) {
	for _, c := range []struct {
		name    string
		changes int
		change  func(n int) error
		err     error
		want    string
	}{
		{"something else", 100, func(n int) error { return d.Write(t.Context(), "other", fmt.Sprint(n)) }, nil, "new"},
		{"once", 1, func(n int) error { return d.Write(t.Context(), "f", fmt.Sprint("before old ", n)) }, nil, "before new 1"},
		{"until it gives up", 100, func(n int) error { return d.Write(t.Context(), "f", fmt.Sprint("old ", n)) }, abi.ErrConflict, "old 4"},
		{"to what cannot be edited", 1, func(int) error { return d.Write(t.Context(), "f", "nothing") }, abi.ErrInvalid, "nothing"},
		{"to nothing", 1, func(int) error { return d.Remove(t.Context(), "f", false) }, abi.ErrNotFound, ""},
		{"to what it was, from another file", 1, func(int) error {
			return errors.Join(d.Write(t.Context(), "g", "x"), d.Remove(t.Context(), "f", false), d.Write(t.Context(), "f", "old"))
		}, nil, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, d, "f", "old")
			n := 0
			slow := *d
			slow.volume = &editing{d.volume, func() {
				if n++; n <= c.changes {
					if err := c.change(n); err != nil {
						t.Error(err)
					}
				}
			}}
			err := slow.Edit(t.Context(), "f", []Replacement{{"old", "new"}})
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if c.want != "" && read(t, d, "f") != c.want {
				t.Errorf("got %q, want %q", read(t, d, "f"), c.want)
			}
		})
	}
}
