package bounded

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		from io.Reader
		want string
		err  error
	}{
		{strings.NewReader(""), "", nil},
		{strings.NewReader("1234"), "1234", nil},
		{strings.NewReader("12345"), "1234", ErrTooLarge},
		{io.MultiReader(strings.NewReader("12"), iotest.ErrReader(broken)), "12", broken},
		{io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(broken)), "1234", ErrTooLarge},
	} {
		if got, err := Read(c.from, 4); string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("got %q, %v, want %q, %v", got, err, c.want, c.err)
		}
	}
	if got, err := Read(&remote{r: strings.NewReader("1234")}, 4); string(got) != "1234" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	files := fstest.MapFS{"a": {Data: []byte("12345")}}
	if got, err := ReadFile(files, "a", 5); string(got) != "12345" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ReadFile(files, "a", 4); string(got) != "1234" || !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ReadFile(files, "b", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// remote is a file that has only content, as those that come from another process.
type remote struct {
	fs.File
	r io.Reader
}

func (r *remote) Read(p []byte) (int, error) { return r.r.Read(p) }
