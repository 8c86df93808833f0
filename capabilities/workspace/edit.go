package workspace

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

const (
	// maxReplacements is the most replacements in one edit.
	maxReplacements = 1000
	// maxSought is how many bytes all texts that one edit replaces may have. Each byte is a state of the search.
	maxSought = 512 << 10
	// maxCounted is how many occurrences an error counts.
	maxCounted = 100
	// maxEdits is how often an edit, or a large append, is tried if the file changes meanwhile.
	maxEdits = 4
)

// Replacement is one change of [Directory.Edit].
type Replacement struct {
	Old string
	New string
}

var errChanged = errors.New("the file has changed in the meantime")

// Edit replaces each Old by its New, literally. Every Old must occur exactly once in the file before the edit, and no two may
// overlap. Otherwise nothing changes, and the error, [abi.ErrInvalid], says which replacement is wrong and how often its text
// occurs. The file must be UTF-8 text and stay within 16 MiB, and all Old together within 512 KiB. If others keep changing the file
// while Edit works, the error is [abi.ErrConflict].
func (d *Directory) Edit(ctx context.Context, path string, replacements []Replacement) error {
	path, err := d.admit(d.resolveFile, "edit", path)
	if err != nil {
		return err
	}
	return unlessChanged("edit", path, func() error { return d.edit(ctx, path, replacements) })
}

// unlessChanged repeats an operation while others change the file during it, at most maxEdits times.
func unlessChanged(operation, path string, try func() error) error {
	for range maxEdits {
		if err := try(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return abi.Errorf(abi.CodeConflict, "others changed %s %d times during the %s, so nothing was written; try again", path, maxEdits, operation)
}

// edit works while others may write. It then writes only if the content is still the one that it read.
func (d *Directory) edit(ctx context.Context, path string, replacements []Replacement) error {
	leave, err := hold(ctx, "edit")
	if err != nil {
		return err
	}
	defer leave()
	var before *node
	var text string
	err = d.view(ctx, "edit", func(o *op) (err error) {
		size := 0 // of the result, if each old text occurs once
		for _, r := range replacements {
			size += len(r.New) - len(r.Old)
		}
		if _, before, err = o.file(path); err == nil && int(before.status.Size)+size > abi.MaxText*3/2 {
			err = abi.TooLarge(uint64(int(before.status.Size)+size), textLimit) // not worth reading
		}
		if err == nil {
			text, err = o.text(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	parts, size, err := replace(ctx, text, replacements)
	if err != nil {
		return err
	}
	if err := abi.Charge(ctx, size); err != nil {
		return err
	}
	edited := make([]io.Reader, len(parts))
	for i, part := range parts {
		edited[i] = strings.NewReader(part)
	}
	content, drop, err := d.stage(ctx, "edit", path, int64(size), io.MultiReader(edited...))
	if err != nil {
		return err
	}
	leave()
	err = d.update(ctx, "edit", func(o *op) error {
		place, n, err := o.file(path)
		if err != nil {
			return err
		}
		if !n.holds(before) {
			return errChanged
		}
		return o.put(place, n, int64(size), content)
	})
	if err != nil {
		drop()
	}
	return err
}

// replace is the step of edit between reading and writing. Its time is proportional to the bytes of the text and of the old texts.
// It returns the parts of the result, taken from the text and the replacements, and the size of the result.
func replace(ctx context.Context, text string, replacements []Replacement) (parts []string, size int, err error) {
	if len(replacements) > maxReplacements {
		return nil, 0, abi.Errorf(abi.CodeInvalid, "%d replacements; at most %d", len(replacements), maxReplacements)
	}
	sought := make([]string, len(replacements))
	size = len(text)
	total := 0
	for i, r := range replacements {
		switch {
		case r.Old == "":
			return nil, 0, abi.Errorf(abi.CodeInvalid, "replacement %d: the old text is empty", i+1)
		case !utf8.ValidString(r.New):
			return nil, 0, abi.Errorf(abi.CodeInvalid, "replacement %d: the new text is not UTF-8", i+1)
		}
		sought[i] = r.Old
		total += len(r.Old)
		size += len(r.New) - len(r.Old)
	}
	if total > maxSought {
		return nil, 0, abi.Errorf(abi.CodeInvalid, "the old texts have %d bytes; at most %d in one edit", total, maxSought)
	}
	found, err := occurrences(ctx, text, sought)
	if err != nil {
		return nil, 0, err
	}
	for i, o := range found {
		switch {
		case o.count > maxCounted:
			return nil, 0, abi.Errorf(abi.CodeInvalid, "replacement %d: the old text occurs more than %d times, not once", i+1, maxCounted)
		case o.count != 1:
			return nil, 0, abi.Errorf(abi.CodeInvalid, "replacement %d: the old text occurs %d times, not once", i+1, o.count)
		}
	}
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(found[a].end, found[b].end) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; found[a].end > found[b].end-len(sought[b]) {
			return nil, 0, abi.Errorf(abi.CodeInvalid, "replacements %d and %d: their old texts overlap", min(a, b)+1, max(a, b)+1)
		}
	}
	if size > abi.MaxText {
		return nil, 0, abi.TooLarge(uint64(size), textLimit)
	}
	at := 0
	for _, i := range order {
		parts = append(parts, text[at:found[i].end-len(sought[i])], replacements[i].New)
		at = found[i].end
	}
	return append(parts, text[at:]), size, nil
}
