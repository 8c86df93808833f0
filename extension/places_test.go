package extension

import (
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	text := "{\n  \"name\": \"x\", \"tools\": [\"add\",\n    \"é\", \"count\"],\n  \"bindings\": {\"notes\": {},\n \"fs.x\": 1}, \"permissions\": {\"kv\": true}\n}"
	for _, test := range []struct {
		parts        []string
		line, column int
	}{
		{[]string{"name"}, 2, 3},
		{[]string{"tools count"}, 3, 10},
		{[]string{"tools gone", "tools"}, 2, 16},
		{[]string{"bindings.notes"}, 4, 16},
		{[]string{"gone"}, 0, 0},
	} {
		line, column := PlacesIn([]byte(text)).Of(test.parts...)
		if line != test.line || column != test.column {
			t.Errorf("%v: %d:%d, want %d:%d", test.parts, line, column, test.line, test.column)
		}
	}
	for name, want := range map[string]int{"notes": 4, "fs.x": 5, "kv": 5, "gone": 4} {
		if line, _ := PlacesIn([]byte(text)).OfBinding(name); line != want {
			t.Errorf("%s: line %d, want %d", name, line, want)
		}
	}
	for _, wrong := range []string{"", "[", "[]", "1", `{"tools":`, strings.Repeat("[", 1000)} {
		if line, column := PlacesIn([]byte(wrong)).OfBinding("notes"); line+column != 0 {
			t.Errorf("%q: %d:%d", wrong, line, column)
		}
	}
}
