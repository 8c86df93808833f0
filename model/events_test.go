package model

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEvents(t *testing.T) {
	gone := errors.New("gone")
	for _, test := range []struct {
		name, stream string
		want         []string
		err          error
	}{
		{"lines of one event", "data: a\ndata:b\ndata:  c\ndata\n\n", []string{"a\nb\n c\n"}, nil},
		{"carriage returns", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, nil},
		{"other fields", ": hello\nevent: x\nid: 7\nretry: 1\nhush\ndatum: y\ndata: a\n\n", []string{"a"}, nil},
		{"no data", "event: ping\n\n\n\n: still here\n\ndata: a\n\n", []string{"a"}, nil},
		{"empty data", "data:\n\n", []string{""}, nil},
		{"cut off", "data: a\n\ndata: b\n", []string{"a"}, nil},
		{"cut off in a line", "data: a\n\ndata: b", []string{"a"}, nil},
		{"broken off", "data: a\n\ndata: b\n", []string{"a"}, gone},
		{"colons", "data: {\"a\":1}\n\n", []string{`{"a":1}`}, nil},
		{"a long line", "data: " + strings.Repeat("x", 1<<20) + "\n\n", []string{strings.Repeat("x", 1<<20)}, nil},
		{"nothing", "", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := iotest.OneByteReader(strings.NewReader(test.stream))
			if len(test.stream) > 1000 {
				from = strings.NewReader(test.stream)
			}
			if test.err != nil {
				from = &thenFails{test.stream, test.err}
			}
			var got []string
			var failed error
			for data, err := range events(from) {
				if err != nil {
					failed = err
					continue
				}
				got = append(got, string(data))
			}
			if !slices.Equal(got, test.want) || !errors.Is(failed, test.err) {
				t.Errorf("got %q, %v", got, failed)
			}
		})
	}
	for data, err := range events(strings.NewReader("data: a\n\ndata: b\n\n")) {
		if err != nil || string(data) != "a" {
			t.Errorf("got %q, %v", data, err)
		}
		break // must not go on
	}
}

type thenFails struct {
	left string
	err  error
}

func (r *thenFails) Read(p []byte) (int, error) {
	if r.left == "" {
		return 0, r.err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func TestPrintable(t *testing.T) {
	a := &api{options: Options{Redact: func(s string) string { return strings.ReplaceAll(s, "key", "-") }}}
	for _, test := range []struct{ text, want string }{
		{"plain, Grüße ☃ 😀\n\tx", "plain, Grüße ☃ 😀\n\tx"},
		{"\x1b[31m\a\r", `\x1b[31m\a\r`},
		{"a\u202eb\u200b\u0085", `a\u202eb\u200b\u0085`},
		{"\xff\xfe\ufffd", `\xff\xfe` + "\ufffd"},
		{"the key", "the -"},
		{strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		{strings.Repeat("x", 999) + "ü", strings.Repeat("x", 999) + "ü"},
		{strings.Repeat("x", 1001), strings.Repeat("x", 1000) + "..."},
		{strings.Repeat("\x00", 1<<20), strings.Repeat(`\x00`, 1000) + "..."},
	} {
		if got := a.printable(test.text); got != test.want {
			t.Errorf("%.40q: got %.40q, want %.40q", test.text, got, test.want)
		}
	}
}
