package browser

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

// key is a key with those that are held.
type key struct {
	name, code, text string
	number           int
	modifiers        int
}

var namedKeys = map[string]struct {
	number int
	text   string
}{
	"Backspace": {8, ""}, "Tab": {9, ""}, "Enter": {13, "\r"}, "Escape": {27, ""}, "Space": {32, " "},
	"PageUp": {33, ""}, "PageDown": {34, ""}, "End": {35, ""}, "Home": {36, ""},
	"ArrowLeft": {37, ""}, "ArrowUp": {38, ""}, "ArrowRight": {39, ""}, "ArrowDown": {40, ""}, "Insert": {45, ""}, "Delete": {46, ""},
	"F1": {112, ""}, "F2": {113, ""}, "F3": {114, ""}, "F4": {115, ""}, "F5": {116, ""}, "F6": {117, ""},
	"F7": {118, ""}, "F8": {119, ""}, "F9": {120, ""}, "F10": {121, ""}, "F11": {122, ""}, "F12": {123, ""},
}

// maxKey is the longest name of a combination, in bytes.
const maxKey = 64

var heldKeys = map[string]int{"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

// parseKey reads "Enter", "a" or "Control+Shift+K".
func parseKey(text string) (key, error) {
	rest, k := text, key{}
	if err := within("key", text, maxKey); err != nil {
		return key{}, err
	}
	for {
		name, after, more := strings.Cut(rest, "+")
		held, ok := heldKeys[name]
		if !more || !ok || after == "" {
			break
		}
		k.modifiers |= held
		rest = after
	}
	if named, ok := namedKeys[rest]; ok {
		k.name, k.code, k.number, k.text = rest, rest, named.number, named.text
		if rest == "Space" {
			k.name = " "
		}
		return k, nil
	}
	r, size := utf8.DecodeRuneInString(rest)
	if size == 0 || size != len(rest) || r == utf8.RuneError || !unicode.IsPrint(r) {
		names := slices.Sorted(maps.Keys(namedKeys))
		return key{}, abi.Errorf(abi.CodeInvalid, `there is no key %s; write one character, "Control+A", or one of %s`,
			short(fmt.Sprintf("%q", text)), strings.Join(names, ", "))
	}
	k.name, k.text = rest, rest
	if upper := unicode.ToUpper(r); upper >= 'A' && upper <= 'Z' {
		k.code, k.number = "Key"+string(upper), int(upper)
	} else if r >= '0' && r <= '9' {
		k.code, k.number = "Digit"+rest, int(r)
	}
	if k.modifiers&^heldKeys["Shift"] != 0 {
		k.text = "" // a shortcut writes nothing
	}
	return k, nil
}

// events are what the browser is told.
func (k key) events() []map[string]any {
	down := map[string]any{"type": "rawKeyDown", "key": k.name, "code": k.code, "windowsVirtualKeyCode": k.number, "modifiers": k.modifiers}
	if k.text != "" {
		down["type"], down["text"] = "keyDown", k.text
	}
	if k.modifiers == heldKeys["Control"] && k.code == "KeyA" { // without a window system, nothing maps it
		down["commands"] = []string{"selectAll"}
	}
	return []map[string]any{down, {"type": "keyUp", "key": k.name, "code": k.code, "windowsVirtualKeyCode": k.number, "modifiers": k.modifiers}}
}
