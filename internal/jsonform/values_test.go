package jsonform_test

import (
	"fmt"
	"testing"

	"github.com/stilehost/stile/internal/jsonform"
)

func ExampleValues() {
	fmt.Println(jsonform.Values([]byte(`["a", "b"]`)))
	// Output: 3
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `"a,b[c"`: 1, `"\",["`: 1, `"\\",1`: 2, `[]`: 2, `[1]`: 2, `[[1,2],3]`: 5, `{"a": 1, "b": [2]}`: 3, `"`: 1, `"\`: 1, ``: 1,
	} {
		if got := jsonform.Values([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 0, `"[["`: 0, `"\",[["`: 0, `[]`: 1, `[1, [2], 3]`: 2, `{"a": [{}], "b": [[[]]]}`: 4, `[`: 1, `]]]`: 0, ``: 0,
	} {
		if got := jsonform.Depth([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func ExampleEncode() {
	text, err := jsonform.Encode(map[string]string{"a": "<b>"}, "")
	fmt.Println(string(text), err)
	// Output: {"a":"<b>"} <nil>
}
