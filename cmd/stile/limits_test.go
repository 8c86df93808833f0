package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
)

func TestParseLimits(t *testing.T) {
	got, err := parseLimits([]string{
		"memory=16MiB", "cpu=200ms", "wall=1m30s", "input=1024", "output=512 KiB", "handles=10", "pending=2", "handles=11",
	})
	want := host.Limits{
		Memory: 16 << 20, CPU: 200 * time.Millisecond, Wall: 90 * time.Second, Input: 1024, Output: 512 << 10, Handles: 11, Pending: 2,
	}
	if got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, pair := range []string{
		"", "cpu", "cpu=", "cpu=0s", "cpu=-1s", "cpu=5", "memory=0", "memory=-1", "memory=1.5MiB", "memory=1TiB", "memory=5GiB",
		"memory=9223372036854775807KiB", "input=3GiB", "handles=many", "handles=1KiB", "log=1", "Memory=1",
	} {
		var usage *usageError
		if l, err := parseLimits([]string{pair}); !errors.As(err, &usage) {
			t.Errorf("%q: got %+v, %v, want a usage error", pair, l, err)
		}
	}
}

// The help of --limit names each limit, and stile calls show has each.
func TestLimitNames(t *testing.T) {
	field, _ := reflect.TypeFor[inputFlags]().FieldByName("Limit")
	names := limitNames()
	listed := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	if help := field.Tag.Get("help"); !strings.Contains(help, " "+listed+".") {
		t.Errorf("the help does not name %s: %s", listed, help)
	}
	if shown := limitsOf(host.DefaultLimits()); len(shown) != reflect.TypeFor[host.Limits]().NumField() || shown["nesting"] != "8" || shown["cpu"] != "5s" {
		t.Errorf("got %v", shown)
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"plain é 日本"}`:        `{"a":"plain é 日本"}`,
		"\"\u009b31m\"":             `"\u009b31m"`,
		"\"\u202e\u2066\"":          `"\u202e\u2066"`,
		"\"\U000e0041\x7f\"":        `"\udb40\udc41\u007f"`,
		"{\r\n\t\"a\": \"\ufeff\"}": "{\r\n\t\"a\": \"\\ufeff\"}",
	} {
		if got := string(escape([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
