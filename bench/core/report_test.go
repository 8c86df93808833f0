package main

import (
	"testing"

	"github.com/stilehost/stile/host"
)

func TestTargets(t *testing.T) {
	b := &bench{}
	for _, c := range []struct {
		row  row
		want string
	}{
		{row{Value: 1}, "none"},
		{row{Value: 1, AtMost: 1}, "met"},
		{row{Value: 1.1, AtMost: 1}, "missed"},
		{row{Value: 2, AtLeast: 2}, "met"},
		{row{Value: 1.9, AtLeast: 2}, "missed"},
		{row{Missing: "it needs root", AtLeast: 2}, "none"},
	} {
		b.add(c.row)
		got := "none"
		if met := b.rows[len(b.rows)-1].Met; met != nil {
			got = map[bool]string{true: "met", false: "missed"}[*met]
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.row, got, c.want)
		}
	}
}

func TestSharedEngine(t *testing.T) {
	name, module, err := sharedEngine([]byte("\x00asm\x0d\x00\x01\x00" + "\x00\x01c" + "\x01\x01x" + "\x01\x01y"))
	if err != nil || string(module) != "x" || name != host.ModuleName([]byte("x")) {
		t.Errorf("got %q, %q, %v", name, module, err)
	}
}

func TestSharedEngineRefuses(t *testing.T) {
	header := "\x00asm\x0d\x00\x01\x00"
	for _, c := range []struct{ name, wasm string }{
		{"empty", ""},
		{"no modules", header},
		{"another section", header + "\x00\x01x"},
		{"ends early", header + "\x01\x7fx"},
		{"length without end", header + "\x01\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := sharedEngine([]byte(c.wasm)); err == nil {
				t.Error("no error")
			}
		})
	}
}
